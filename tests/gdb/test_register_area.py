"""A function whose CFI has a rule for the stack pointer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sframe_unwind import elf
from sframe_unwind.code.judge.findings import DWARF, Counts
from sframe_unwind.verify.code_check import check_elf
from tests.gdb.compiling import compiled
from tests.gdb.driver import Debugger, batch

MODES = ("set sframe mode off", "set sframe mode always", "set sframe strict on")
FRAMES = ["leaf", "run", "middle", "main"]
SHOWN = [*(line for level in range(4) for line in (f"frame function {FRAMES[level]}", "p/x $sp", "p/x $fp")), "bt"]


@pytest.mark.usefixtures("fixed_addresses")
def test_item_39_the_caller_has_the_stack_pointer_of_its_rule(debugger: Debugger, tmp_path: Path) -> None:
    """SFrame made from the CFI gives the same as the CFI itself in GDB, including registers."""
    executable = compiled("register_area.c", tmp_path, sframe=False)
    start = ("set sframe generate on", "break leaf", "run")
    said = [batch(debugger, *start, mode, *SHOWN, executable=executable) for mode in MODES]
    assert re.findall(r"^#\d+ +(?:0x\w+ in )?(\w+)", said[0], re.MULTILINE)[-4:] == FRAMES
    values = [re.findall(r"^\$\d+ = (0x\w+)", one, re.MULTILINE) for one in said]
    assert len(values[0]) == 2 * len(FRAMES)
    assert values == [values[0]] * len(MODES)
    # For frames that are not SFrame's, the number would be printed as well.
    assert batch(debugger, *start, "sframe compare", executable=executable).endswith("\n4 frames agree\n")


def test_item_39_the_code_proves_the_rule(tmp_path: Path) -> None:
    with elf.opened(compiled("register_area.c", tmp_path, sframe=False)) as binary:
        verdict = check_elf(binary, None)
    assert verdict.counts[DWARF] == Counts(proved=verdict.instructions, wrong=0, unknown=0)
