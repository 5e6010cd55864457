"""The symbols of an ELF file: names of functions by address, and addresses by name."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate

from sframe_unwind.address import Range
from sframe_unwind.elf.constants import SHT_DYNSYM, SHT_SYMTAB, SYMBOL
from sframe_unwind.elf.contents import Reader
from sframe_unwind.elf.records import SectionHeader
from sframe_unwind.elf.relocation import symbol_values
from sframe_unwind.elf.section_addresses import Layout
from sframe_unwind.errors import FileError
from sframe_unwind.named_tuple import NamedTuple

_LOCAL = 0
_NO_TYPE = 0
_MAPPING = ord("$")
"""The first character of symbols that tell code from data (``$x``, ``$d``)."""
_KINDS = (_NO_TYPE, 2, 10)
"""Symbol types: ``STT_NOTYPE`` (assembly code often sets no type), ``STT_FUNC``, ``STT_GNU_IFUNC``."""


_BEYOND = 1 << 64
"""Larger than every address."""
_NEAR = 16
"""Number of symbols before an address, and of those after it, that are enough in nearly all files."""
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
        keys = [
            (address, size > 0, is_global, -_underscores(name) if name[:1] == "_" else 0)
            for address, size, is_global, name, _, _ in symbols
        ]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        self._symbols = [symbols[number] for number in order]
        self._starts = [keys[number][0] for number in order]

    @cached_property
    def _sized(self) -> list[int]:
        """For each symbol, the number of the last symbol with a size that is not after it; -1: there is none."""
        return list(accumulate((number if symbol.size else -1 for number, symbol in enumerate(self._symbols)), max))

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

    def has_sized(self, first: int, last: int) -> bool:
        """Return whether a symbol with a size begins at one of the addresses from the first to the last one."""
        return any(symbol.size for symbol in self.between(first, last + 1))

    def next_start(self, address: int) -> int | None:
        """Return the address of the first symbol after an address; ``None``: there is none."""
        following = bisect_right(self._starts, address)
        return self._starts[following] if following < len(self._starts) else None

    def addresses(self, name: str) -> list[int]:
        """Return the addresses of all functions with a name, in ascending order."""
        return sorted({symbol.address for symbol in self._symbols if symbol.name == name})


class NearSymbols:
    """The symbols of a linked file, of which only those near a wanted address are decoded.

    The parameters and exceptions are those of :func:`symbols_of`; a lookup raises them, too.
    """

    def __init__(self, reader: Reader, layout: Layout) -> None:
        table = _table(reader)
        self._ends = layout.ends
        self._names = b"" if table is None else reader.strings(table)
        self._entries = () if table is None else tuple(reader.records(SYMBOL, reader.contents(table)))
        self._order = sorted(
            (value, number)
            for number, (_, info, _, section, value, _) in enumerate(self._entries)
            if section and info & 0xF in _KINDS
        )
        """Address and number of the symbols of functions, by address."""

    @cached_property
    def _all(self) -> Symbols:
        return self._decoded(0, len(self._order))

    def find(self, address: int) -> tuple[Symbol, int] | None:
        """Return the symbol that covers an address, see :meth:`Symbols.find`."""
        following = bisect_left(self._order, (address + 1, 0))
        start, end = max(following - _NEAR, 0), following + _NEAR
        near = self._decoded(start, end)
        # Symbols before the last one with a size, and after the next one, do not matter.  Others may have the address
        # of the first one that was decoded.
        ends = end >= len(self._order) or near.next_start(address) is not None
        if ends and (not start or near.has_sized(self._order[start][0] + 1, address)):
            return near.find(address)
        return self._all.find(address)

    def _decoded(self, start: int, end: int) -> Symbols:
        chosen = [(value, self._entries[number]) for value, number in self._order[start:end]]
        return Symbols(decoded((one[0] for one in chosen), (one[1] for one in chosen), self._names, self._ends))


def symbols_of(reader: Reader, layout: Layout) -> Symbols:
    """Read the symbol table of a file (``.symtab``), or its dynamic symbol table if there is no other.

    :param layout: the addresses of the sections, to which the symbols of an object file are relative.
    :raises FileError: the file is malformed.
    """
    table = _table(reader)
    return Symbols([] if table is None else _decode(reader, table, layout))


def _table(reader: Reader) -> SectionHeader | None:
    """Return the symbol table of a file, or its dynamic symbol table if there is no other; ``None``: there is none."""
    tables = (section for kind in (SHT_SYMTAB, SHT_DYNSYM) for section in reader.sections if section.type == kind)
    return next(tables, None)


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
    left, size_of_names = _USES * len(names), len(names)
    find, new = names.find, tuple.__new__
    text = names.decode("ascii") if names.isascii() else None  # parts of text take less time than decoding each name
    for address, (at, info, _, section, _, size) in zip(addresses, entries):
        kind = info & 0xF
        if not section or kind not in _KINDS:
            continue
        end = find(b"\0", at)
        length = (end if end >= 0 else size_of_names) - at
        left += _SHORT - length if length > 0 else _SHORT
        if left < 0:
            raise FileError(f"symbols use each byte of their {len(names):,} bytes of names more than {_USES} times")
        if end > at and names[at] != _MAPPING:
            name = names[at:end].decode("utf-8", "backslashreplace") if text is None else text[at:end]
            limit = limits[section] if section < len(limits) else _BEYOND
            fields = address, size, info >> 4 != _LOCAL, name, limit, kind != _NO_TYPE
            symbols.append(new(Symbol, fields))  # a third of the time of calling the class with keywords
    return symbols


def _underscores(name: str) -> int:
    """Return the number of underscores at the start of a name; the prefix of glibc's internal names counts more."""
    return len(name) - len(name.lstrip("_")) + 8 * name.startswith("__GI_")
