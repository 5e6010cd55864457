"""Stacks that continue elsewhere, because a function has moved the stack pointer to its own memory."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.gdb.compiling import compiled
from tests.gdb.driver import Debugger, batch

MODES = ("set sframe mode off", "set sframe mode always", "set sframe strict on")
OUTWARD = ["leaf", "work", "call_on", "main"]
INWARD = OUTWARD[:3]
"""GDB's message: a frame at a lower address is not a caller."""
STOPPED = "Backtrace stopped: previous frame inner to this frame (corrupt stack?)"


@pytest.mark.parametrize(("argument", "functions"), [("", OUTWARD), ("inward", INWARD)])
def test_item_35_ends_where_gdb_ends(argument: str, functions: list[str], debugger: Debugger, tmp_path: Path) -> None:
    executable = compiled("switched_stacks.c", tmp_path, "-O1", "-fno-omit-frame-pointer")
    shown = [line for mode in MODES for line in (mode, "bt")]
    output = batch(debugger, "break leaf", f"run {argument}", *shown, "sframe bt", executable=executable)
    found = re.findall(r"^#\d+ +(?:0x\w+ +(?:in )?)?(\w+) ", output, re.MULTILINE)
    assert found == functions * 4
    assert output.count(STOPPED) == (3 if argument else 0)
    assert ("does not lie outward of SP" in output) == bool(argument)
