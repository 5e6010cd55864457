"""The symbols of an ELF file: names of functions by address, and addresses by name."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from elftools.elf.elffile import ELFFile

from sframe_unwind.elf.file import PathLike, opened
from sframe_unwind.elf.relocation import SYMBOL, records, symbol_values
from sframe_unwind.elf.section_addresses import Layout

_LOCAL = 0
_KINDS = (0, 2, 10)
"""Symbol types: ``STT_NOTYPE`` (assembly code often sets no type), ``STT_FUNC``, ``STT_GNU_IFUNC``."""


class Symbol(NamedTuple):
    """A symbol of a function."""

    address: int
    size: int
    """In bytes; 0: not known."""
    is_global: bool
    name: str


class Symbols:
    """The symbols of a file, by address and by name."""

    def __init__(self, symbols: list[Symbol]) -> None:
        # A lookup finds the last symbol at an address.  Symbols with a size, and then global ones, come last.
        self._symbols = sorted(symbols, key=lambda s: (s.address, s.size > 0, s.is_global))
        self._starts = [symbol.address for symbol in self._symbols]

    def __iter__(self) -> Iterator[Symbol]:
        return iter(self._symbols)

    def name(self, address: int) -> str | None:
        """Return ``symbol`` or ``symbol+0x10`` for an address; ``None``: no symbol covers it."""
        found = self.find(address)
        if found is None:
            return None
        symbol, offset = found
        return f"{symbol.name}+{offset:#x}" if offset else symbol.name

    def find(self, address: int) -> tuple[Symbol, int] | None:
        """Return the symbol that covers an address, and the offset of the address in bytes; ``None``: no symbol does.

        A symbol without a size, as assembly code often has, extends to the next symbol.
        """
        following = bisect_right(self._starts, address)
        if not following:
            return None
        symbol = self._symbols[following - 1]
        end = symbol.address + symbol.size
        if not symbol.size:
            # The symbol may be a label in a function that has a size.
            sized = next((other for other in reversed(self._symbols[:following]) if other.size), symbol)
            if address < sized.address + sized.size:
                symbol, end = sized, sized.address + sized.size
            elif following < len(self._starts):
                end = self._starts[following]
        return (symbol, address - symbol.address) if address < max(end, symbol.address + 1) else None

    def addresses(self, name: str) -> list[int]:
        """Return the addresses of all functions with a name, in ascending order."""
        return sorted({symbol.address for symbol in self._symbols if symbol.name == name})


def read_symbols(path: PathLike) -> Symbols:
    """Read the symbol table of a file (``.symtab``), or its dynamic symbol table if there is no other.

    The result is empty for an object file.  All its sections are at address 0, so addresses are ambiguous.

    :raises FileError: the file cannot be read.
    """
    with opened(path) as elf:
        return Symbols([]) if elf["e_type"] == "ET_REL" else symbols_of(elf)


def symbols_of(elf: ELFFile, layout: Layout | None = None) -> Symbols:
    """Read the symbols of an open ELF file.

    :param layout: the addresses of the sections of an object file.
    """
    for kind in ("SHT_SYMTAB", "SHT_DYNSYM"):
        for number, section in enumerate(elf.iter_sections()):
            if section["sh_type"] == kind:
                addresses = symbol_values(elf, number, layout.addresses if layout and layout.relocatable else ())
                return Symbols(_decode(elf, section.data(), addresses, elf.get_section(section["sh_link"]).data()))
    return Symbols([])


def _decode(elf: ELFFile, entries: bytes, addresses: list[int], names: bytes) -> list[Symbol]:
    symbols = []
    for address, (at, info, _, section, _, size) in zip(addresses, records(elf, SYMBOL, entries)):
        if section and info & 0xF in _KINDS and (end := names.find(b"\0", at)) > at and names[at] != ord("$"):
            name = names[at:end].decode("utf-8", "backslashreplace")
            symbols.append(Symbol(address, size, info >> 4 != _LOCAL, name))
    return symbols
