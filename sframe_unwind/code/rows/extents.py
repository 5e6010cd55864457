"""The extents of the functions that the tables of one file name, for rows of single addresses."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from enum import Enum

from sframe_unwind.address import Range, merged, overlap
from sframe_unwind.code.image.code_image import CodeImage
from sframe_unwind.code.image.ranges import CodeRange, CodeRanges
from sframe_unwind.elf import ElfBinary
from sframe_unwind.elf.symbols import Symbols
from sframe_unwind.errors import SFrameError
from sframe_unwind.named_tuple import NamedTuple

_BEYOND = 1 << 64
"""An address after all others."""


class FoundBy(Enum):
    """How it is known where a function begins."""

    CFI = "CFI"
    """CFI describes it, perhaps by rules that cannot be used."""
    SYMBOL = "symbol"
    """A symbol with the type of a function is there."""
    PLT = "PLT"
    """It is a procedure linkage table."""
    CALLED = "called"
    """Code to which the entry point, or a function of a table, leads calls it, or passes its address on."""
    FRAME = "the frame itself"
    """The frame's return address follows a direct call of it."""
    POINTER = "pointer"
    """Data holds its address, and the frame's return address follows a call through a register or memory."""


class Extent(NamedTuple):
    """The extent of one function."""

    function: CodeRange
    found_by: FoundBy


class Extents:
    """The functions that CFI, symbols and procedure linkage tables name.

    :param symbols: the symbols of the file, or of its separate debug file.
    """

    def __init__(self, binary: ElfBinary, image: CodeImage, symbols: Symbols) -> None:
        by_cfi = [extent for extent in _by_cfi(binary) if image.is_code(extent[0])]
        covered = merged(by_cfi)
        found_by: dict[Range, FoundBy] = dict.fromkeys(((plt.start, plt.end) for plt in image.plts), FoundBy.PLT)
        found_by.update(dict.fromkeys(filter(lambda one: image.is_code(one[0]), _by_symbols(symbols)), FoundBy.SYMBOL))
        found_by = {extent: how for extent, how in found_by.items() if not overlap([extent], covered)}
        found_by.update(dict.fromkeys(by_cfi, FoundBy.CFI))
        self.ranges = CodeRanges(found_by)
        """All of them; of several that overlap, each ends where the next one begins."""
        self._found_by = {start: how for (start, _), how in found_by.items()}

    def find(self, address: int) -> Extent | None:
        """Return the function that contains an address; ``None``: no table names one."""
        function = self.ranges.find(address)
        return None if function is None else Extent(function, self._found_by[function.start])

    def next_start(self, address: int) -> int:
        """Return the start of the first function after an address; if there is none, an address after all code."""
        following = bisect_right(self.ranges.starts, address)
        return self.ranges.starts[following] if following < len(self.ranges) else _BEYOND


def _by_cfi(binary: ElfBinary) -> list[Range]:
    try:
        return binary.cfi.ranges()
    except SFrameError:
        return []  # damaged CFI names nothing


def _by_symbols(symbols: Symbols) -> Iterator[Range]:
    """Yield the extents of the symbols with the type of a function.

    One without a size, as assembly code may have, extends to the next function of its section.
    """
    functions = [symbol for symbol in symbols if symbol.is_function]
    for number, symbol in enumerate(functions, 1):
        end = symbol.address + symbol.size
        if not symbol.size:
            end = min(symbol.limit, functions[number].address if number < len(functions) else _BEYOND)
        if symbol.address < end < _BEYOND:
            yield symbol.address, end
