"""Mode auto: no frame, register or variable is worse than LLDB's own; SFrame is used where nothing else is there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.gdb.compiling import compiled, tools_for
from tests.gdb.debug_frame_builds import BUILDS, compressed
from tests.hanging import HANG
from tests.lldb.driver import IMPORT, batch, stacks
from tests.missing import toolchain_needed
from tests.rewriting.bolt import bolted
from tests.rewriting.bolt import compiled as for_bolt
from tests.samples.build import build
from tests.verify.planting import plant, plant_everywhere

WITHOUT_ZSTANDARD = Path(__file__).with_name("inside") / "without_zstandard.py"
IN_LEAF = (
    *("breakpoint set -n leaf", "process launch -o /dev/null", "bt", "up", "frame variable"),
    *("register read rbx rbp rsp", "thread step-out", "bt", "up 2", "frame variable"),
)


def shown(
    lldb: str, program: Path, *commands: str, plugin: bool = True, mode: str = "auto", before: tuple[str, ...] = ()
) -> list[str]:
    """Return the lines that LLDB prints from the start of the program on.

    `before`: commands before the plugin is imported.
    """
    first = (*before, IMPORT, f"sframe mode {mode}") if plugin else ()
    load = [part for command in first for part in ("-O", command)]
    said = batch(lldb, *load, *(part for command in commands for part in ("-o", command)), str(program))
    lines = said.partition("(lldb) process launch")[2].splitlines()
    return [line for line in lines if not line.startswith("Process ")]


@pytest.mark.parametrize("stop", range(4))
@pytest.mark.usefixtures("fixed_addresses")
def test_item_44_a_file_that_bolt_has_rewritten(lldb: str, stop: int, tmp_path: Path) -> None:
    """BOLT updates the CFI, and leaves the SFrame of the code before."""
    with toolchain_needed():
        program = bolted(for_bolt(tmp_path))
    commands = ("breakpoint set -n stop_here", "process launch -o /dev/null", *["continue"] * stop)
    commands = (*commands, "bt", "thread step-out", "frame variable", "register read rbp rsp", "bt")
    alone = shown(lldb, program, *commands, plugin=False)
    assert "`main" in "\n".join(alone)
    assert shown(lldb, program, *commands) == alone


def test_status_counts_the_rows_that_are_not_used(lldb: str, tmp_path: Path) -> None:
    with toolchain_needed():
        program = bolted(for_bolt(tmp_path))
    commands = ("breakpoint set -n stop_here", "process launch -o /dev/null", "sframe status")
    said = "\n".join(shown(lldb, program, *commands))
    assert "not used, the first at 0x" in said
    assert "rewritten by BOLT" in said


@pytest.mark.usefixtures("fixed_addresses")
def test_rows_that_differ_from_the_cfi(lldb: str, tmp_path: Path) -> None:
    """In mode `always` SFrame is believed, and its stack ends or goes astray."""
    program = tmp_path / "program"
    plant(build("recursion"), program, "cfa")
    start = ("breakpoint set -n sample_stop", "process launch -o /dev/null")
    commands = (*start, "bt", "up 3", "frame variable", "register read rbp rsp rbx", "thread step-out", "bt")
    alone = shown(lldb, program, *commands, plugin=False)
    assert "`main" in "\n".join(alone)
    assert shown(lldb, program, *commands) == alone


@pytest.mark.parametrize("mode", ["auto", "fallback"])
@pytest.mark.parametrize("place", ["pie", "debuglink", "beside-eh-frame", "zstd"])
@pytest.mark.usefixtures("fixed_addresses")
def test_item_33_rows_that_differ_from_debug_frame(lldb: str, place: str, mode: str, tmp_path: Path) -> None:
    """In mode `always`, the stack ends after `leaf`."""
    with toolchain_needed():
        program = (compressed("zstd") if place == "zstd" else BUILDS[place])(tmp_path)
    plant_everywhere(program, tmp_path / "planted")
    alone = shown(lldb, tmp_path / "planted", *IN_LEAF, plugin=False)
    assert "`main" in "\n".join(alone)
    assert shown(lldb, tmp_path / "planted", *IN_LEAF, mode=mode) == alone


@pytest.mark.parametrize("mode", ["auto", "fallback"])
@pytest.mark.usefixtures("fixed_addresses")
def test_item_33_debug_frame_of_a_stripped_program(lldb: str, mode: str, tmp_path: Path) -> None:
    """LLDB finds an FDE of `.debug_frame` by its symbol; its symbol of `_start` reaches to the end of `.text`."""
    with toolchain_needed():
        program, tools = BUILDS["pie"](tmp_path), tools_for(3)
    bare = tmp_path / "bare"
    _run(tools / "strip", "--keep-section=.debug_frame", program, "-o", bare)
    leaf = next(line.split()[0] for line in _run(tools / "nm", program).splitlines() if line.endswith(" leaf"))

    def pcs(path: Path, plugin: bool) -> list[str]:
        commands = (f"breakpoint set -s {path.name} -a 0x{leaf}", "process launch -o /dev/null", "bt")
        (stack,) = stacks("\n".join(shown(lldb, path, *commands, plugin=plugin, mode=mode)))
        return stack[:4]  # the fourth is main

    whole, alone, used = pcs(program, plugin=False), pcs(bare, plugin=False), pcs(bare, plugin=True)
    assert used == whole != alone


@pytest.mark.parametrize("mode", ["auto", "fallback"])
@pytest.mark.usefixtures("fixed_addresses")
def test_item_45_compressed_cfi_that_only_lldb_can_read(lldb: str, mode: str, tmp_path: Path) -> None:
    with toolchain_needed():
        program = compressed("zstd")(tmp_path)
    plant_everywhere(program, tmp_path / "planted")
    alone = shown(lldb, tmp_path / "planted", *IN_LEAF, plugin=False)
    assert "(const int *) p" in "\n".join(alone)  # else LLDB cannot read it, either
    what = "only LLDB can decompress its .debug_frame: frames that this may describe are LLDB's"
    told = f"sframe: {tmp_path / 'planted'}: {what}"
    hidden = (f'command script import "{WITHOUT_ZSTANDARD}"',)
    lines = shown(lldb, tmp_path / "planted", *IN_LEAF, mode=mode, before=hidden)
    assert lines.count(told) == 1
    assert [line for line in lines if line != told] == alone


@pytest.mark.usefixtures("fixed_addresses")
def test_a_return_address_that_the_cfi_marks_as_undefined(lldb: str, tmp_path: Path) -> None:
    """GNU as before 2.46 writes rows with a return address there."""
    with toolchain_needed():
        program = compiled("leaving.c", tmp_path, "-O1", version=2)
    commands = ("breakpoint set -n work", "process launch -o /dev/null", "bt")
    alone = batch(lldb, *(part for command in commands for part in ("-o", command)), str(program))
    beside = batch(lldb, "-O", IMPORT, *(part for command in commands for part in ("-o", command)), str(program))
    assert stacks(beside) == stacks(alone)
    assert stacks(alone)


def _run(*command: object) -> str:
    words = [str(part) for part in command]
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=HANG).stdout
