"""Mode auto: no frame, register or variable is worse than LLDB's own; SFrame is used where nothing else is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gdb.compiling import compiled
from tests.lldb.driver import IMPORT, batch, stacks
from tests.missing import toolchain_needed
from tests.rewriting.bolt import bolted
from tests.rewriting.bolt import compiled as for_bolt
from tests.samples.build import build
from tests.verify.planting import plant


def shown(lldb: str, program: Path, *commands: str, plugin: bool = True, mode: str = "auto") -> list[str]:
    """Return the lines that LLDB prints from the start of the program on."""
    load = ("-O", IMPORT, "-O", f"sframe mode {mode}") if plugin else ()
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
