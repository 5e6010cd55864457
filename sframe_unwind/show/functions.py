"""The functions of a file: their extents by the tables and the symbols, and their names."""

from __future__ import annotations

from bisect import bisect_right

from sframe_unwind.code.image.ranges import CodeRange
from sframe_unwind.elf import ElfBinary
from sframe_unwind.elf.symbols import Symbol, Symbols, symbol_text
from sframe_unwind.errors import FileError
from sframe_unwind.show.tables import Tables

_BEYOND = 1 << 64
"""Larger than every address."""

_NOWHERE = (0, 0)
"""An extent without addresses."""


class Functions:
    """The functions of a file.

    Where a symbol has a size, it delimits a function; elsewhere, the entries of SFrame and of DWARF CFI do.

    :param symbols: the symbols of the separate debug file; ``None``: those of the file itself.
    """

    def __init__(self, binary: ElfBinary, tables: Tables, symbols: Symbols | None = None) -> None:
        self._binary = binary
        self._code_end = binary.layout.code_end
        self.symbols = Symbols([*(binary.symbols if symbols is None else symbols), *binary.stubs])
        self._named = _NOWHERE
        """The extent of the section with the address that was named last: most others are in the same one."""
        self._described = sorted(set(tables.ranges()))

    def all(self) -> list[CodeRange]:
        """Return the extents of all functions that a table describes, by address; none overlaps another.

        An entry that several symbols divide is one function, as a PLT is.
        """
        found: list[CodeRange] = []
        for start, end in self._described:
            limit = self._code_end(start)
            if limit is None or start >= end:
                continue
            end = min(end, limit)
            if found and start < found[-1].end:
                if end <= found[-1].end:
                    continue
                if start == found[-1].start:
                    found[-1] = CodeRange(start, end)
                    continue
                start = found[-1].end
            found.append(CodeRange(start, end))
        return found

    def around(self, address: int) -> CodeRange:
        """Return the extent of the function that contains an address.

        :raises FileError: the address is in no function and no code, or nothing tells where the function begins.
        """
        limit = self._code_end(address) or _BEYOND
        symbol = self.symbols.find(address)
        if symbol is not None and symbol[0].size:
            start, end = symbol[0].address, symbol[0].address + symbol[0].size
            return CodeRange(start, min(end, limit))
        entries = [extent for extent in self._described if extent[0] <= address < extent[1]]
        if entries:
            start, end = max(entries)
            return CodeRange(start, min(end, limit))
        if limit == _BEYOND:
            raise FileError(f"{self.shown(address)} is in no section with code")
        if symbol is None:
            raise FileError(f"{self.shown(address)}: neither unwind data nor a symbol tells where its function begins")
        start = symbol[0].address
        return CodeRange(start, min(self._next_start(start), limit))

    def _next_start(self, address: int) -> int:
        """Return the start of the next symbol or entry after an address; beyond all code if there is none."""
        entry = bisect_right(self._described, (address, _BEYOND))
        following = [self._described[entry][0]] if entry < len(self._described) else []
        symbol = self.symbols.next_start(address)
        return min([*following, *([] if symbol is None else [symbol])], default=_BEYOND)

    def labels(self, part: CodeRange) -> dict[int, tuple[str, ...]]:
        """Return the names of the symbols that begin inside a function, by address."""
        found: dict[int, tuple[str, ...]] = {}
        for symbol in self.symbols.between(part.start + 1, part.end):
            found[symbol.address] = (*found.get(symbol.address, ()), symbol.name)
        return found

    def name(self, address: int) -> str:
        """Return the name of the function at an address, and the offset from its start; empty: no symbol covers it."""
        found = self.symbols.find(address)
        if found is None:
            return ""
        start = found[0].address
        low, high = self._named
        if not (low <= start and address < high):
            low, high = self._named = self._binary.layout.code_section(address) or _NOWHERE
            other = self._binary.layout.code_section(start) or _NOWHERE
            if (low, high) != other:
                return ""
        return symbol_text(*found)

    def whole(self, part: CodeRange) -> tuple[int, int, Symbol | None]:
        """Return start and end of a function, and the symbol that covers all of it.

        ``None``: there is no such symbol, or several divide the function.
        """
        return part.start, part.end, self.symbols.covering(*part) if self.name(part.start) else None

    def shown(self, address: int) -> str:
        """Return an address as text: in an object file, as section and offset."""
        return str(self._binary.layout.spot(address))
