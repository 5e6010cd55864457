"""Finds the code at which the stacks of a Linux kernel end."""

from __future__ import annotations

from collections.abc import Iterator

from sframe_unwind.address import Range
from sframe_unwind.arch import PlaceKind
from sframe_unwind.elf import ElfBinary

_OUTERMOST = (PlaceKind.USER_ENTRY, PlaceKind.TASK_START)


def outermost_code(binary: ElfBinary) -> Iterator[Range]:
    """Yield the extents of the entry code whose frames are the outermost ones; none: the file is no known kernel.

    The processor enters it from user space, or a task begins there: no function of the kernel is its caller.  Entry
    code for exceptions in the kernel is not among it, since the interrupted function is the next frame.
    """
    kernel = binary.arch.linux_kernel
    if kernel is None or not binary.is_kernel:
        return
    symbols = {symbol.name: symbol for symbol in binary.symbols if symbol.size}
    for entry in kernel.entry_code:
        symbol = symbols.get(entry.function)
        if symbol is not None and entry.kind in _OUTERMOST:
            yield symbol.address, symbol.address + symbol.size
    for passage in kernel.passages:
        symbol = symbols.get(passage.function)
        if symbol is not None and passage.kind in _OUTERMOST and not passage.is_absolute:
            start, end = symbol.address + passage.offset, symbol.address + symbol.size
            yield start, min(start + passage.size, end) if passage.size else end
