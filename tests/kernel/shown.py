"""The plugins in a debugger at a kernel: how they are loaded, and what they print."""

from __future__ import annotations

import re
from pathlib import Path

from sframe_unwind.arch import PlaceKind

CHECKOUT = Path(__file__).resolve().parents[2]
GDB_PLUGIN, LLDB_PLUGIN = CHECKOUT / "gdb_plugin/sframe_gdb.py", CHECKOUT / "lldb_plugin/sframe_lldb.py"
USER, TASK = ENDS = "entry from user space", "start of the task"
"""How a stack of the kernel ends."""

PARTLY = PlaceKind.PARTLY_SAVED.value
"""How it ends where an exception has just come, or is about to return."""


def load(name: str) -> str:
    """Return the command that loads the plugin into a debugger."""
    return f"command script import {LLDB_PLUGIN}" if name == "lldb" else f"source {GDB_PLUGIN}"


def functions(sframe_bt: str) -> list[str]:
    """Return the functions of ``sframe bt``."""
    return [found[1] for found in re.finditer(r"^#\d+ +0x[0-9a-f]{16}  (.+?) \(", sframe_bt, re.MULTILINE)]


def end_of(sframe_bt: str) -> str:
    """Return why the stack of ``sframe bt`` ends."""
    found = re.search(r"^end: (.*)$", sframe_bt, re.MULTILINE)
    assert found, sframe_bt
    return found[1]
