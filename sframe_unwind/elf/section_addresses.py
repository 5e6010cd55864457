"""The addresses of the sections of an ELF file.

The sections of an object file have no addresses; here each gets a distinct one.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from typing import NamedTuple

from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile

_FIRST = 0x1000
_GAP = 64
"""Bytes between two sections, so that an address just after the end of one is not in the next."""
_BEYOND = 1 << 64
"""Larger than every address."""


class FileAddress(NamedTuple):
    """An address as tools show it: absolute in a linked file, relative to the section in an object file."""

    section: str
    """Name of the section; empty: the address is in no section."""
    address: int
    """The address, or the offset from the start of the section in bytes."""
    relative: bool
    """:attr:`address` is an offset from the start of the section."""

    def __str__(self) -> str:
        return f"{self.section}+{self.address:#x}" if self.relative else f"{self.address:#x}"


class Layout:
    """The addresses of all sections.  Sections that are not loaded are at address 0, as in a linked file."""

    def __init__(self, elf: ELFFile) -> None:
        self.relocatable: bool = elf["e_type"] == "ET_REL"
        self.addresses: list[int] = []
        """The address of each section, by section number."""
        self.ends: list[int] = []
        """The end address (exclusive) of each section, by section number."""
        self.code: list[tuple[int, int]] = []
        """Start and end address (exclusive) of each section with instructions, sorted."""
        self._sections: list[tuple[int, int, str]] = []
        following, available = _FIRST, elf.stream.seek(0, os.SEEK_END)
        for section in elf.iter_sections():
            address, size, flags = section["sh_addr"], section["sh_size"], section["sh_flags"]
            if self.relocatable and flags & SH_FLAGS.SHF_ALLOC:
                address = following + -following % max(section["sh_addralign"], 1)
                following = address + size + _GAP
            self.addresses.append(address)
            self.ends.append(address + size)
            if flags & SH_FLAGS.SHF_ALLOC and not flags & SH_FLAGS.SHF_TLS:
                self._sections.append((address, address + size, section.name))
            in_file = section["sh_type"] != "SHT_NOBITS" and section["sh_offset"] + size <= available
            if flags & SH_FLAGS.SHF_EXECINSTR and size and in_file:
                self.code.append((address, address + size))
        self._sections.sort()
        self.code.sort()

    def code_end(self, address: int) -> int | None:
        """Return the end address of the code section that contains an address; ``None``: no code section does."""
        at = bisect_right(self.code, (address, _BEYOND)) - 1
        return self.code[at][1] if at >= 0 and address < self.code[at][1] else None

    def starts(self, name: str) -> list[int]:
        """Return the addresses of all loaded sections of a name; a file with section groups has several."""
        return [start for start, end, found in self._sections if found == name and start < end]

    def spot(self, address: int) -> FileAddress:
        """Return an address as section and offset, or as an absolute address."""
        at = bisect_right(self._sections, (address, _BEYOND)) - 1
        start, end, name = self._sections[at] if at >= 0 else (0, 0, "")
        if not start <= address < end:
            return FileAddress("", address, False)
        return FileAddress(name, address - start if self.relocatable else address, self.relocatable)
