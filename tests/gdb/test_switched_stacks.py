"""Stacks that continue elsewhere, because a function has moved the stack pointer to its own memory."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.gdb.compiling import compiled
from tests.gdb.driver import Debugger, batch

MODES = ("set sframe mode off", "set sframe mode always", "set sframe strict on")
OUTWARD = ["leaf", "work", "call_on", "main"]
INWARD = ["leaf", "work", "call_on", "inward", "call_on", "main"]
INTERRUPTED = ["leaf", "interrupting", "landing", "call_on", "main"]
"""GDB's message: a frame at a lower address is not a caller."""
STOPPED = "Backtrace stopped: previous frame inner to this frame (corrupt stack?)"


@pytest.mark.parametrize(("argument", "functions"), [("", OUTWARD), ("inward", INWARD)])
def test_item_35_bt_ends_where_gdb_ends_and_sframe_bt_does_not(
    argument: str, functions: list[str], debugger: Debugger, tmp_path: Path
) -> None:
    executable = compiled("switched_stacks.c", tmp_path, "-O1", "-fno-omit-frame-pointer")
    shown = [line for mode in MODES for line in (mode, "bt")]
    output = batch(debugger, "break leaf", f"run {argument}", *shown, "sframe bt", executable=executable)
    assert _functions(output) == functions[: 3 if argument else 4] * 3 + functions
    assert output.count(STOPPED) == (3 if argument else 0)
    assert output.splitlines()[-1] == "end: main; GDB goes on with 'set backtrace past-main on'"


def test_item_35_a_context_is_followed_to_a_stack_at_lower_addresses(debugger: Debugger, tmp_path: Path) -> None:
    executable = compiled("switched_stacks.c", tmp_path, "-O1", "-fno-omit-frame-pointer")
    shown = "sframe bt -regs pc=$pc,sp=$sp,fp=$rbp"
    assert _functions(batch(debugger, "break leaf", "run inward", shown, executable=executable))[:6] == INWARD


def test_sframe_bt_ends_at_the_number_of_frames_that_are_wanted(debugger: Debugger, tmp_path: Path) -> None:
    executable = compiled("switched_stacks.c", tmp_path, "-O1", "-fno-omit-frame-pointer")
    output = batch(debugger, "break leaf", "run inward", "sframe bt 4", "sframe bt 2", executable=executable)
    assert _functions(output) == INWARD[:4] + INWARD[:2]


def test_item_35_a_signal_frame_leads_to_a_stack_at_lower_addresses(debugger: Debugger, tmp_path: Path) -> None:
    """GDB alone follows a frame that the CFI marks as a signal frame: so do the commands, by SFrame."""
    executable = compiled("switched_stacks.c", tmp_path, "-O1", "-fno-omit-frame-pointer", "-DSIGNAL_FRAME")
    output = batch(debugger, "break leaf", "run inward", "bt", "sframe bt", "sframe compare", executable=executable)
    native, _, rest = output.partition("\n#0  0x")
    assert re.findall(r"^#\d+ .*?(\w+ called|\w+ \()", native, re.MULTILINE) == [
        *("leaf (", "work (", "handler called", "inward (", "handler called", "main (")
    ]
    assert _functions(f"\n#0  0x{rest}")[:6] == INWARD
    assert output.splitlines()[-1] == "6 frames agree"


def test_the_caller_of_a_signal_frame_was_interrupted(debugger: Debugger, tmp_path: Path) -> None:
    """Its pc is not a return address, although for GDB, a frame that SFrame unwinds is an ordinary one."""
    executable = compiled("switched_stacks.c", tmp_path, "-O1", "-fno-omit-frame-pointer")
    lines = ("break leaf", "run inward interrupted", "set sframe strict on", "sframe bt", "frame 2", "sframe explain")
    output = batch(debugger, *lines, executable=executable)
    assert _functions(output)[:5] == INTERRUPTED
    landing = re.search(r"^#2  0x0*(\w+)  landing", output, re.MULTILINE)
    assert landing is not None
    assert output.partition("\nFDE: ")[0].splitlines()[-1].split()[0] == f"0x{landing[1]}"


def _functions(output: str) -> list[str]:
    return re.findall(r"^#\d+ +(?:0x\w+ +(?:in )?)?(\w+) ", output, re.MULTILINE)
