"""Finds the places of a kernel's entry code from its ORC."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Callable

from sframe_unwind.address import Range, gaps, merged
from sframe_unwind.arch import PlaceKind
from sframe_unwind.cfi.rules import NoRule
from sframe_unwind.kernel.entry_code import EntryPlace
from sframe_unwind.orc import OrcEntry, OrcKind, OrcTable
from sframe_unwind.unwind.modules import Module

_EXCEPTIONS = (OrcKind.REGISTERS, OrcKind.PARTIAL_REGISTERS)
_BEHIND_AN_END = (OrcKind.UNDEFINED, OrcKind.REGISTERS)
"""ORC's kinds of entries at the return address of an outermost function's last call: undefined if the call never
returns, otherwise the saved registers of user space, which also end the stack."""


def orc_places(orc: OrcTable, is_entry_code: Callable[[int], bool]) -> Iterator[EntryPlace]:
    """Yield the places, without the names of their functions.

    :param is_entry_code: ``(address)``: returns whether the code there is entered from user space.  All of this code is
        in assembly, and has no CFI.
    """
    pairs = iter(orc)
    before, end = next(pairs, None), 0
    for after in chain(pairs, (None,)):
        if before is not None:
            start, entry = max(before[0], end), before[1]
            end = after[0] if after is not None else start + 1
            kind = _kind(entry, start, is_entry_code)
            if entry.kind is OrcKind.END and after is not None and after[1].kind in _BEHIND_AN_END:
                end += 1  # GDB looks up the last call by its return address
            if kind is not None and start < end:
                yield EntryPlace(start, end, "", kind, entry)
        before = after


def code_without_debug_frame(module: Module) -> list[Range]:
    """Return the code of a kernel that no record of ``.debug_frame`` describes, in order.

    :raises SFrameError: the CFI cannot be read.
    """
    covered = merged(extent for cfi in module.debug_cfi for extent in cfi.extents())
    return [gap for code in merged(module.ranges) for gap in gaps(code, covered)]


def assembly_places(orc: OrcTable, code: Iterable[Range], is_entry_code: Callable[[int], bool]) -> Iterator[EntryPlace]:
    """Yield the places of assembly functions outside of entry code, without their names.

    :param code: code that has no CFI.
    :param is_entry_code: see :func:`orc_places`.
    """
    for start, end in code:
        for low, high, entry in orc.entries(start, end):
            if entry.kind is OrcKind.CALL and not isinstance(entry.said, NoRule) and not is_entry_code(low):
                yield EntryPlace(low, high, "", PlaceKind.FUNCTION, entry)


def _kind(entry: OrcEntry, start: int, is_entry_code: Callable[[int], bool]) -> PlaceKind | None:
    if entry.kind in _EXCEPTIONS:
        return PlaceKind.EXCEPTION
    if entry.kind is OrcKind.END:
        return PlaceKind.USER_ENTRY if is_entry_code(start) else PlaceKind.TASK_START
    if entry.kind is OrcKind.CALL and isinstance(entry.said, NoRule):
        return PlaceKind.STACK_SWITCH
    return PlaceKind.FUNCTION if entry.kind is OrcKind.CALL and is_entry_code(start) else None
