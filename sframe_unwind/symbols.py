"""The names of functions in an ELF file."""

from __future__ import annotations

import struct
from bisect import bisect_right
from typing import NamedTuple

from elftools.elf.elffile import ELFFile

from sframe_unwind.elf import PathLike, opened

_LOCAL = 0
_KINDS = (0, 2, 10)
"""Symbol types: none (assembly sources forget to give one), function, indirect function."""
_SIZE = 24


class Symbol(NamedTuple):
    """A symbol in code."""

    address: int
    size: int
    is_global: bool
    name: str


class Symbols:
    """The symbols of a file, by address and by name."""

    def __init__(self, symbols: list[Symbol]) -> None:
        # Of several names for one address the last stands behind the others and is found: sized and global ones.
        self._symbols = sorted(symbols, key=lambda s: (s.address, s.size > 0, s.is_global))
        self._starts = [symbol.address for symbol in self._symbols]

    def name(self, address: int) -> str | None:
        """Return ``symbol`` or ``symbol+0x10`` for an address; ``None`` where no symbol is at or before it."""
        at = bisect_right(self._starts, address) - 1
        if at < 0:
            return None
        symbol = self._symbols[at]
        offset = address - symbol.address
        if offset >= max(symbol.size, 1):
            return None
        return f"{symbol.name}+{offset:#x}" if offset else symbol.name

    def addresses(self, name: str) -> list[int]:
        """Return the addresses of all functions with a name, in ascending order."""
        return sorted({symbol.address for symbol in self._symbols if symbol.name == name})


def read_symbols(path: PathLike) -> Symbols:
    """Read a file's symbol table, or else the one of the dynamic linker.

    Object files have none here: all their sections lie at address 0, so a symbol's address does not tell which.

    :raises FileError: the file cannot be read.
    """
    with opened(path) as elf:
        if elf["e_type"] == "ET_REL":
            return Symbols([])
        for kind in ("SHT_SYMTAB", "SHT_DYNSYM"):
            for section in elf.iter_sections():
                if section["sh_type"] == kind:
                    return Symbols(_decode(elf, section.data(), elf.get_section(section["sh_link"]).data()))
    return Symbols([])


def _decode(elf: ELFFile, entries: bytes, names: bytes) -> list[Symbol]:
    # pyelftools makes an object of each, which takes seconds for what this does in a tenth of one.
    layout = struct.Struct(("<" if elf.little_endian else ">") + "IBBHQQ")
    symbols = []
    for at, info, _, section, address, size in layout.iter_unpack(entries[: len(entries) // _SIZE * _SIZE]):
        if section and info & 0xF in _KINDS and (end := names.find(b"\0", at)) > at and names[at] != ord("$"):
            name = names[at:end].decode("utf-8", "backslashreplace")
            symbols.append(Symbol(address, size, info >> 4 != _LOCAL, name))
    return symbols
