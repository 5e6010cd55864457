"""The plugins in a debugger with a kernel: the commands that load them, and their output."""

from __future__ import annotations

import re
from pathlib import Path

from sframe_unwind.arch import PlaceKind

CHECKOUT = Path(__file__).resolve().parents[2]
GDB_PLUGIN, LLDB_PLUGIN = CHECKOUT / "gdb_plugin/sframe_gdb.py", CHECKOUT / "lldb_plugin/sframe_lldb.py"
USER, TASK = ENDS = "entry from user space", "start of the task"
"""The ends of a kernel's stack."""

PARTLY = PlaceKind.PARTLY_SAVED.value
"""The end of a stack if an exception has just come, or is about to return."""

ENTRY = {
    # Also the place where GDB alone ends because the code after it is freed.
    "arm64": re.compile(
        r"\b(el[01][th]_\d\d_\w+?(?<!_handler)|vectors|call_on_irq_stack|ret_from_fork)\b"
        r"|\b(arch_call_rest_init|start_kernel)\b"
    ),
    "amd64": re.compile(
        r"\b((instr_|f?red_)?sysvec_\w+|asm_\w+|entry_SYSCALL_64|ret_from_fork|secondary_startup_64\w*)\b"
        "|<signal handler called>"
    ),
    "s390x": re.compile(
        r"\b(system_call|\w+_(int|check)_handler|psw_idle|do_irq_async|do_softirq_own_stack|irq_exit\w*|ret_from_fork)\b"
        r"|\barch_call_rest_init\b|<signal handler called>"
    ),
}
"""Entry code, and functions that switch to the interrupt stack: a debugger alone is right in the frames inside."""


def load(name: str) -> str:
    """Return the command that loads the plugin into a debugger."""
    return f"command script import {LLDB_PLUGIN}" if name == "lldb" else f"source {GDB_PLUGIN}"


def functions(sframe_bt: str) -> list[str]:
    """Return the functions of ``sframe bt``."""
    return [found[1] for found in re.finditer(r"^#\d+ +0x[0-9a-f]{16}  (.+?)(?: \(|  )", sframe_bt, re.MULTILINE)]


def names_in_bt(sframe_bt: str) -> list[str]:
    """Return the functions of ``sframe bt`` by the names in the debugger's own backtrace."""
    return [re.sub(r"<exception (\w+)>", r"\1", one) for one in functions(sframe_bt)]


def end_of(sframe_bt: str) -> str:
    """Return why the stack of ``sframe bt`` ends."""
    found = re.search(r"^end: (.*)$", sframe_bt, re.MULTILINE)
    assert found, sframe_bt
    return found[1]
