"""The symbols of an ELF file: names of functions by address, and addresses by name."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from sframe_unwind.address import Range
from sframe_unwind.elf.constants import SHT_DYNSYM, SHT_SYMTAB, SYMBOL
from sframe_unwind.elf.contents import Reader
from sframe_unwind.elf.records import SectionHeader
from sframe_unwind.elf.relocation import symbol_values
from sframe_unwind.elf.section_addresses import Layout
from sframe_unwind.errors import FileError

_LOCAL = 0
_NO_TYPE = 0
_KINDS = (_NO_TYPE, 2, 10)
"""Symbol types: ``STT_NOTYPE`` (assembly code often sets no type), ``STT_FUNC``, ``STT_GNU_IFUNC``."""


_BEYOND = 1 << 64
"""Larger than every address."""
_USES, _SHORT = 16, 64
"""Limits for the string table: the average number of symbols that use a byte of it, and the length of a name that is
always allowed.  Linkers write equal names once, and a name that is the end of another one as a part of that one."""


class Symbol(NamedTuple):
    """A symbol of a function."""

    address: int
    size: int
    """Size in bytes; 0: not known."""
    is_global: bool
    name: str
    limit: int = _BEYOND
    """End address (exclusive) of its section; nothing after it belongs to the function."""
    is_function: bool = True
    """Its type is that of a function; assembly code often sets none, and labels in a function have none."""


def symbol_text(symbol: Symbol, offset: int) -> str:
    """Return ``symbol`` or ``symbol+0x10`` for an address at an offset (bytes) from the symbol."""
    return f"{symbol.name}+{offset:#x}" if offset else symbol.name


class Symbols:
    """The symbols of a file, by address and by name."""

    def __init__(self, symbols: list[Symbol]) -> None:
        # A lookup finds the last symbol at an address.  Symbols with a size come last, and global ones last among
        # these.  Of several names, as `__GI___clone3` and `clone3` in the C library, the plain one comes last.
        self._symbols = sorted(symbols, key=_order)
        self._starts = [symbol.address for symbol in self._symbols]
        numbers = range(len(self._symbols))
        self._sized = list(accumulate((number if self._symbols[number].size else -1 for number in numbers), max))
        """For each symbol, the number of the last symbol with a size that is not after it; -1: there is none."""

    def __iter__(self) -> Iterator[Symbol]:
        return iter(self._symbols)

    def extents(self) -> Iterator[Range]:
        """Yield start and end address of each function with a size, in ascending order of the start."""
        return ((symbol.address, symbol.address + symbol.size) for symbol in self._symbols if symbol.size)

    def name(self, address: int) -> str | None:
        """Return ``symbol`` or ``symbol+0x10`` for an address; ``None``: no symbol covers it."""
        found = self.find(address)
        return None if found is None else symbol_text(*found)

    def find(self, address: int) -> tuple[Symbol, int] | None:
        """Return the symbol that covers an address, and the offset of the address in bytes; ``None``: no symbol does.

        A symbol without a size, as assembly code often has, extends to the next symbol in its section.
        """
        following = bisect_right(self._starts, address)
        if not following:
            return None
        symbol = self._symbols[following - 1]
        end = symbol.address + symbol.size
        if not symbol.size:
            # The symbol may be a label in a function that has a size.
            number = self._sized[following - 1]
            sized = self._symbols[number]
            if number >= 0 and address < sized.address + sized.size:
                symbol, end = sized, sized.address + sized.size
            else:
                end = min(symbol.limit, self._starts[following] if following < len(self._starts) else _BEYOND)
                end = end if end < _BEYOND else symbol.address
        return (symbol, address - symbol.address) if address < max(end, symbol.address + 1) else None

    def covering(self, start: int, end: int) -> Symbol | None:
        """Return the symbol that covers all of a range (end exclusive), if no other one begins in it."""
        at = bisect_right(self._starts, start) - 1
        symbol = self._symbols[at] if at >= 0 else None
        if symbol is not None and symbol.address == start and start + symbol.size == end:  # the case for most functions
            return symbol if at + 1 == len(self._starts) or self._starts[at + 1] >= end else None
        found = self.find(start)
        if found is None or bisect_right(self._starts, start) != bisect_left(self._starts, end):
            return None
        last = self.find(end - 1)
        return found[0] if last is not None and last[0] is found[0] else None

    def between(self, start: int, end: int) -> list[Symbol]:
        """Return the symbols that begin in a range of addresses (end exclusive), by address."""
        return self._symbols[bisect_left(self._starts, start) : bisect_left(self._starts, end)]

    def next_start(self, address: int) -> int | None:
        """Return the address of the first symbol after an address; ``None``: there is none."""
        following = bisect_right(self._starts, address)
        return self._starts[following] if following < len(self._starts) else None

    def addresses(self, name: str) -> list[int]:
        """Return the addresses of all functions with a name, in ascending order."""
        return sorted({symbol.address for symbol in self._symbols if symbol.name == name})


def symbols_of(reader: Reader, layout: Layout) -> Symbols:
    """Read the symbol table of a file (``.symtab``), or its dynamic symbol table if there is no other.

    :param layout: the addresses of the sections, to which the symbols of an object file are relative.
    :raises FileError: the file is malformed.
    """
    for kind in (SHT_SYMTAB, SHT_DYNSYM):
        for section in reader.sections:
            if section.type == kind:
                return Symbols(_decode(reader, section, layout))
    return Symbols([])


def _decode(reader: Reader, table: SectionHeader, layout: Layout) -> list[Symbol]:
    addresses = symbol_values(reader, table.number, layout.addresses if layout.relocatable else ())
    return decoded(addresses, reader.records(SYMBOL, reader.contents(table)), reader.strings(table), layout.ends)


def decoded(
    addresses: Iterable[int], entries: Iterable[tuple[int, ...]], names: bytes, limits: Sequence[int] = ()
) -> list[Symbol]:
    """Return the functions of a symbol table.

    :param addresses: address of each entry.
    :param entries: the fields of each entry.
    :param names: the string table.
    :param limits: end address of each section.
    :raises FileError: the names are implausibly long: thousands of symbols can share one of a megabyte.
    """
    symbols = []
    left = _USES * len(names)
    for address, (at, info, _, section, _, size) in zip(addresses, entries):
        if not section or info & 0xF not in _KINDS:
            continue
        end = names.find(b"\0", at)
        left += _SHORT - max((end if end >= 0 else len(names)) - at, 0)
        if left < 0:
            raise FileError(f"symbols use each byte of their {len(names):,} bytes of names more than {_USES} times")
        if end > at and names[at] != ord("$"):
            name = names[at:end].decode("utf-8", "backslashreplace")
            limit = limits[section] if section < len(limits) else _BEYOND
            is_function = info & 0xF != _NO_TYPE
            fields = address, size, info >> 4 != _LOCAL, name, limit, is_function
            symbols.append(tuple.__new__(Symbol, fields))  # a third of the time of calling the class with keywords
    return symbols


def _order(symbol: Symbol) -> tuple[int, bool, bool, int]:
    name = symbol.name
    return symbol.address, symbol.size > 0, symbol.is_global, -_underscores(name) if name[:1] == "_" else 0


def _underscores(name: str) -> int:
    """Return the number of underscores at the start of a name; the prefix of glibc's internal names counts more."""
    return len(name) - len(name.lstrip("_")) + 8 * name.startswith("__GI_")
