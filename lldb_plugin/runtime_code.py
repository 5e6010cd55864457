"""Code that a process registered at run time, in LLDB, and the stack beyond it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

import lldb

from sframe_unwind.abi import Abi
from sframe_unwind.image import ReadMemory
from sframe_unwind.runtime_code.opening import open_run_time_code
from sframe_unwind.step import ReadRegister, ReadWord, step
from sframe_unwind.walk import Handed, Other, Registers

if TYPE_CHECKING:
    from lldb_plugin.process import Process
    from sframe_unwind.runtime_code.source import RunTimeCode

DWARF = "dwarf"


def run_time_code(
    target: lldb.SBTarget, read: ReadMemory, abi: Abi, report: Callable[[str], None]
) -> RunTimeCode | None:
    """Return the run-time code of a target's process, ``None`` where it can have none."""

    def find(name: str) -> list[int]:
        found = target.FindSymbols(name)
        addresses = (
            found.GetContextAtIndex(index).GetSymbol().GetStartAddress().GetLoadAddress(target)
            for index in range(found.GetSize())
        )
        return [address for address in addresses if address != lldb.LLDB_INVALID_ADDRESS]

    return open_run_time_code(abi, read, find, report)


def beyond(process: Process, other: Other, read_word: ReadWord) -> Other:
    """Return LLDB's unwinder, and behind it DWARF CFI where LLDB has no frames.

    LLDB's own stack ends at the first frame of run-time code; what lies beyond may have CFI and no SFrame.
    """

    run_time = process.modules.run_time
    if run_time is None or not run_time.is_used():
        return other

    def unwind(registers: Registers, live: bool, read_register: ReadRegister | None) -> Handed | None:
        return other.unwind(registers, live, read_register) or _by_cfi(process, registers, live, read_word)

    return Other(other.name, unwind)


def _by_cfi(process: Process, registers: Registers, live: bool, read_word: ReadWord) -> Handed | None:
    pc, sp, fp = registers
    lookup = pc if live else pc - 1
    module = process.modules.find(lookup)
    record = module.cfi_record(lookup) if module is not None else None
    if record is None:
        return None
    try:
        from sframe_unwind.dwarf_memory import FdeReader  # pyelftools may not be there
    except ImportError:
        return None
    reader = FdeReader(process.read, process.abi)
    function = reader.function_at_record(record)
    rule = reader.rule(function.row_at(lookup), lookup)
    if rule.ra_undefined:
        return Handed(None, False, None, DWARF)
    if rule.ra is None and not live:
        return None
    return Handed(step(rule, process.abi, sp, fp, read_word, None, process.pac_mask), function.signal, None, DWARF)
