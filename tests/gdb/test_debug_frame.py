"""Functions with SFrame and with CFI in `.debug_frame`: variables, entry values and registers are as without SFrame."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.gdb.debug_frame_builds import BUILDS, program, stripped
from tests.gdb.driver import Debugger, batch, call
from tests.pairing import paired

MOVES = ["stepi", *["continue"] * 3, "stepi 3", "up", "finish", "continue"]


def described(executable: Path, place: str = "leaf") -> dict[str, Any]:
    """Return a program in the form for `tests.gdb.inside.program`."""
    return {"executable": str(executable), "arguments": [], "emulator": [], "place": place, "signals": []}


def test_item_33_all_is_as_without_sframe(debugger: Debugger, tmp_path: Path) -> None:
    programs = []
    for name, make in BUILDS.items():
        (tmp_path / name).mkdir()
        # Before the start, GDB knows only those functions in a library that the program calls.
        programs.append(described(make(tmp_path / name), "middle" if name == "library" else "leaf"))
    for name, answer in paired(BUILDS, call(debugger, "whole_state.compare", programs=programs, moves=MOVES)):
        assert not answer["differences"], name
        assert answer["values"] > 15, name
        assert answer["unwinders"][:4] == ["sframe"] * 3 + answer["unwinders"][3:4], name


def test_fallback_leaves_the_frames_to_gdb(debugger: Debugger, tmp_path: Path) -> None:
    programs = [described(program(tmp_path))]
    (answer,) = call(debugger, "claims.collect", programs=programs, mode="fallback")
    assert answer["pcs"]
    assert not answer["claimed"]


def test_debug_file_that_is_added_later(debugger: Debugger, tmp_path: Path) -> None:
    executable = stripped(program(tmp_path))
    debug_file = executable.with_suffix(".debug").rename(tmp_path / "elsewhere")
    shown = "python print(gdb.selected_frame().older().read_register('rbx'))"
    output = batch(debugger, "break leaf", "run", "up", shown, f"symbol-file {debug_file}", "bt", executable=executable)
    last = output.splitlines()[-4:]
    assert [line.partition(" (")[0].split()[-1] for line in last] == ["leaf", "middle", "outer", "main"]
    assert not any("<optimized out>" in line for line in last[1:3])


@pytest.mark.parametrize("how", ["removed", "replaced", "damaged"])
def test_item_33_file_that_has_changed(debugger: Debugger, how: str, tmp_path: Path) -> None:
    executable = program(tmp_path)
    aside = tmp_path / "aside"
    if how == "removed":
        change = f"shell mv {executable} {aside}"
    elif how == "replaced":
        other = shutil.copy(program_of_another_build(tmp_path), aside)
        change = f"shell cp --remove-destination {other} {executable}"
    else:
        # The section headers are at the end of the file.
        aside.write_bytes(executable.read_bytes()[:-1000])
        change = f"shell cp --remove-destination {aside} {executable}"
    commands = ("set sframe mode off", "break leaf", "run", change, "set sframe mode always", "bt", "info registers")
    output = batch(debugger, *commands, executable=executable)
    names = [line.partition(" (")[0].split()[-1] for line in output.splitlines() if line.startswith("#")]
    assert names == ["leaf", "middle", "outer", "main"]


def program_of_another_build(folder: Path) -> Path:
    """Build a program with the same functions at other addresses."""
    other = folder / "other"
    other.mkdir()
    return program(other, "-O1", "-fno-omit-frame-pointer")


@pytest.mark.usefixtures("fixed_addresses")
def test_file_of_a_remote_target(debugger: Debugger, tmp_path: Path) -> None:
    """GDB reads the file through gdbserver; the same file at that path on this machine has the CFI for the plugin."""
    executable = program(tmp_path)
    connect = f"target remote | gdbserver - {executable}"
    looks = ("bt", "frame 1", "info locals", "info registers rbx rbp r12", "frame 2", "info locals")
    expected, shown = (
        _from_backtrace(batch(debugger, f"set sframe mode {mode}", connect, "break leaf", "continue", *looks))
        for mode in ("off", "always")
    )
    assert [line.partition(" (")[0].split()[-1] for line in expected[:4]] == ["leaf", "middle", "outer", "main"]
    assert not any("optimized out" in line for line in expected[:3])
    assert shown == expected


def _from_backtrace(output: str) -> list[str]:
    """Return the lines from the first frame of a backtrace on."""
    lines = output.splitlines()
    return lines[next(index for index, line in enumerate(lines) if line.startswith("#0 ")) :]
