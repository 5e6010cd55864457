"""Finds the places in a kernel's entry code whose frames cannot be unwound by a row."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Callable

from sframe_unwind.arch import Arch, EntryCode, PlaceKind
from sframe_unwind.errors import MemoryReadError
from sframe_unwind.memory import ReadMemory
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.orc import OrcEntry

FindSymbol = Callable[[str], "int | None"]
"""``(name)``: returns the address of a function or variable of the kernel, or ``None``."""

_LONGEST = 1024
"""Size of the longest function to search, in bytes.  Entry code with all mitigations has some 400."""
_ON_THE_WAY = {
    PlaceKind.EXCEPTION: PlaceKind.PARTLY_SAVED,
    PlaceKind.USER_ENTRY: PlaceKind.USER_ENTRY,
    PlaceKind.TASK_START: PlaceKind.TASK_START,
}
"""By the kind of a call, the kind of the code before and after it."""
_CODE = (("_stext", "_etext"), ("_sinittext", "_einittext"))
"""The symbols around the kernel's code."""
_CONTEXT = 8
"""Number of bytes before a return address that :attr:`Arch.ends_call` needs."""


class EntryPlace(NamedTuple):
    """A call instruction in entry code with the instruction after it, or the code before or after these.

    A frame with its pc in the place is unwound by the kind of the place.  The instruction after the call is included
    because GDB looks up signal frames by pc, even if that is a return address.
    """

    start: int
    """Address of the first instruction."""
    end: int
    """Address after the last instruction."""
    function: str
    """Name of the function; empty: the code that shows the frame finds the name."""
    kind: PlaceKind
    orc: OrcEntry | None = None
    """ORC's entry; ``None``: the kernel has no ORC, and the kind is sufficient."""

    @property
    def is_in_c(self) -> bool:
        """Whether it is a call in a C function, which has CFI."""
        return not self.function and self.orc is None

    @property
    def is_outermost(self) -> bool:
        """Whether the stack ends here."""
        return self.kind in (PlaceKind.USER_ENTRY, PlaceKind.TASK_START, PlaceKind.PARTLY_SAVED)


def shown_name(place: EntryPlace, symbol: str | None) -> str:
    """Return the name of a frame in entry code; an exception is shown as debuggers show signal frames.

    :param symbol: the debugger's name of the function, if it has one.
    """
    name = place.function or symbol or ""
    return exception_name(name) if place.kind is PlaceKind.EXCEPTION else name


def exception_name(function: str) -> str:
    """Return the name of an exception's frame, given the function of its entry code."""
    return f"<exception {function}>"


def find_places(arch: Arch, symbol: FindSymbol, read: ReadMemory) -> Iterator[EntryPlace]:
    """Yield the places of the entry code that the kernel has.

    :param read: reads the kernel's code.
    :raises MemoryReadError: its entry code cannot be read, for example because paging is not enabled yet.
    """
    for entry in arch.linux_kernel.entry_code if arch.linux_kernel else ():
        start = symbol(entry.function)
        callee = symbol(entry.callee) if entry.callee else None
        if start is not None and (callee is not None or not entry.callee):
            yield from _places(arch, entry, start, callee, _read_code(start, read))
    for passage in arch.linux_kernel.passages if arch.linux_kernel else ():
        start = 0 if passage.is_absolute else symbol(passage.function)
        if start is not None:
            start += passage.offset
            size = passage.size or _way_out(arch, passage.kind, _read_code(start, read))
            yield EntryPlace(start, start + size, passage.function, passage.kind)
    yield from _stack_switches(arch, symbol, read)


def _way_out(arch: Arch, kind: PlaceKind, code: bytes) -> int:
    """Return the size of the code up to the return, in bytes; 0: there is none."""
    unit, kernel = arch.instruction_unit, arch.linux_kernel
    if kernel is None:
        return 0
    ends = kernel.ends_function if kind is PlaceKind.LEAF else kernel.ends_exception
    return next((at + unit for at in range(0, len(code), unit) if ends(code[at : at + arch.call_size])), 0)


def _stack_switches(arch: Arch, symbol: FindSymbol, read: ReadMemory) -> Iterator[EntryPlace]:
    """Yield the calls of functions on another stack in C code, without the names of their functions."""
    kinds = arch.linux_kernel.stack_switches if arch.linux_kernel else ()
    for start, end in ((symbol(first), symbol(last)) for first, last in _CODE) if kinds else ():
        if start is None or end is None:
            continue
        code = read(start, end - start)
        for switch in kinds:
            for found in switch.code.finditer(code):
                first, last = found.span("call")
                if switch.saves is None or switch.saves.search(code, max(first - _LONGEST, 0), first):
                    yield EntryPlace(start + first, start + last + arch.instruction_unit, "", switch.kind)


def _places(arch: Arch, entry: EntryCode, start: int, callee: int | None, code: bytes) -> Iterator[EntryPlace]:
    size, way_in = arch.call_size, start
    for at in range(0, len(code) - size + 1, arch.instruction_unit):
        if callee is None and arch.linux_kernel and arch.linux_kernel.ends_function(code[at : at + size]):
            return
        before = code[max(0, at + size - _CONTEXT) : at + size].rjust(_CONTEXT, b"\0")
        if not arch.ends_call(before):
            continue
        address = start + at
        target = arch.call_target(code[at : at + size], address + size)
        if callee is None or target == callee:
            if entry.kind in _ON_THE_WAY and way_in < address:
                yield EntryPlace(way_in, address, entry.function, _ON_THE_WAY[entry.kind])
            way_in = address + size + arch.instruction_unit
            yield EntryPlace(address, way_in, entry.function, entry.kind)
            if arch.linux_kernel and arch.linux_kernel.returns_itself:
                out = _way_out(arch, entry.kind, code[way_in - start :])
                if out:
                    yield EntryPlace(way_in, way_in + out, entry.function, _ON_THE_WAY[entry.kind])
                return


def _read_code(start: int, read: ReadMemory) -> bytes:
    """Return the code from an address on, as far as it is in memory."""
    size = _LONGEST
    while True:
        try:
            return read(start, size)
        except MemoryReadError:
            if size <= struct.calcsize("Q"):
                raise
            size //= 2
