"""Stepping over calls through PLTs with wrong SFrame rows of GNU ld."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.gdb.compiling import compiled, tools_for
from tests.gdb.driver import Debugger, batch, command_line, run
from tests.hanging import HANG

BUILDS = {
    "2.40 ibt lazy": (1, "-z,lazy,-z,ibtplt"),
    "2.40 ibt now": (1, "-z,now,-z,ibtplt"),
    "2.44 lazy": (2, "-z,lazy"),
    "2.47 lazy": (3, "-z,lazy"),
    "2.47 ibt now": (3, "-z,now,-z,ibtplt"),
}
NEXTS = 8
STEPS = ["break use", "run", *["next"] * NEXTS, "backtrace", "finish", "delete", "next"]
SETTINGS = (
    ("set sframe mode always",),
    ("set sframe mode auto", "set sframe strict on"),
    ("set sframe mode fallback", "set sframe strict off"),
)
MARK = "the next run"
REFUTED = re.compile(
    r"rows? of (a )?PLT stubs? cannot be true, the code is used instead: at 0x([0-9a-f]+), CFA = rsp \+ "
)


def built(folder: Path, name: str) -> tuple[Path, Path]:
    """Return the program with CFI, and the same program without CFI."""
    version, link = BUILDS[name]
    flags = ("-O1", "-fno-builtin", "-fcf-protection=full", f"-Wl,{link}")
    program = compiled("plt_calls.c", folder, *flags, version=version)
    alone = folder / "alone"
    objcopy = [str(tools_for(version) / "objcopy"), "-R", ".eh_frame", "-R", ".eh_frame_hdr"]
    subprocess.run([*objcopy, str(program), str(alone)], check=True, timeout=HANG)
    return program, alone


def stops(output: str) -> list[str]:
    """Return GDB's lines about stops and frames of a run, without the number that GDB gives to a returned value."""
    lines = re.split(r"^Breakpoint \d+, ", output, maxsplit=1, flags=re.MULTILINE)[-1].splitlines()
    return [re.sub(r"\$\d+ = ", "$N = ", line) for line in lines if not line.startswith(("sframe", "[Inferior"))]


@pytest.mark.parametrize("name", BUILDS)
@pytest.mark.usefixtures("fixed_addresses")
def test_next_goes_over_calls_as_without_the_plugin(debugger: Debugger, name: str, tmp_path: Path) -> None:
    program, alone = built(tmp_path, name)
    commands = [part for command in STEPS for part in ("-ex", command)]
    without = run(command_line(debugger, "-batch", *commands, str(program), plugin=None), statuses=(0, 1))
    expected = stops(without)
    assert sum(bool(re.match(r"\d+\t", line)) for line in expected) >= NEXTS
    runs = [command for setting in SETTINGS for command in (f"echo {MARK}\\n", "kill", *setting, *STEPS)]
    for path in (program, alone):
        _, *shown = batch(debugger, *runs, executable=path).split(f"{MARK}\n")
        assert len(shown) == len(SETTINGS)
        for setting, output in zip(SETTINGS, shown):
            assert stops(output) == expected, (path, setting)


@pytest.mark.parametrize("name", BUILDS)
@pytest.mark.usefixtures("fixed_addresses")
def test_commands_tell_which_rows_are_not_used(newest: Debugger, name: str, tmp_path: Path) -> None:
    program, _ = built(tmp_path, name)
    status = batch(newest, "break use", "run", "sframe status", executable=program)
    found = REFUTED.search(status)
    assert found, status
    at = f"0x{found[2]}"
    shown = batch(newest, "break use", "run", f"sframe explain {at}", executable=program)
    assert "the code refutes the row, it is not used" in shown
    assert "stub:  the code of the PLT stub gives CFA = rsp + " in shown
    there = batch(
        newest, "break use", "run", f"break *{at}", "continue", "sframe bt", "sframe compare", executable=program
    )
    if "Breakpoint 2, " in there:  # bound at the start, the refuted row can be one of lazy binding
        assert re.search(r"^#0 .* plt code$", there, re.MULTILINE)
        assert re.search(r"^\d+ frames agree", there, re.MULTILINE)
