"""Code that a process registered at run time, in LLDB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

import lldb

from sframe_unwind.arch import Arch
from sframe_unwind.memory import ReadMemory
from sframe_unwind.runtime_code.opening import has_list, open_run_time_code

if TYPE_CHECKING:
    from sframe_unwind.runtime_code.source import RunTimeCode


def run_time_code(
    target: lldb.SBTarget, read: ReadMemory, arch: Arch, report: Callable[[str], None]
) -> RunTimeCode | None:
    """Return the run-time code of a target's process; ``None``: it can have none."""

    def find(name: str) -> list[int]:
        found = target.FindSymbols(name)
        addresses = (
            found.GetContextAtIndex(index).GetSymbol().GetStartAddress().GetLoadAddress(target)
            for index in range(found.GetSize())
        )
        return [address for address in addresses if address != lldb.LLDB_INVALID_ADDRESS]

    return open_run_time_code(arch, read, find, report)


def registers_code(module: lldb.SBModule) -> bool:
    """Return whether a module has a list of run-time code."""
    return has_list(lambda name: [0] * module.FindSymbols(name).GetSize())
