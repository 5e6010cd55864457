"""Where the sections of an ELF file lie: in an object file, where none has an address yet, each gets one of its own."""

from __future__ import annotations

import os
from bisect import bisect_right
from typing import NamedTuple

from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile

_FIRST = 0x1000
_GAP = 64
"""Bytes between two sections, so that an address behind the end of one is none in the next."""
_BEYOND = 1 << 64
"""Behind all addresses."""


class FileAddress(NamedTuple):
    """An address in the terms of the file."""

    section: str
    """Name of the section; empty where it is in none."""
    address: int
    """In an object file it counts from the start of the section."""
    relative: bool
    """Whether it does."""

    def __str__(self) -> str:
        return f"{self.section}+{self.address:#x}" if self.relative else f"{self.address:#x}"


class Layout:
    """An address for each section.

    Sections that are not loaded stay at 0, as in a linked file: what is said of them are offsets.
    """

    def __init__(self, elf: ELFFile) -> None:
        self.relocatable: bool = elf["e_type"] == "ET_REL"
        self.addresses: list[int] = []
        """By section number."""
        self.code: list[tuple[int, int]] = []
        """Start and end address of each section with instructions, in order."""
        self._sections: list[tuple[int, int, str]] = []
        following, available = _FIRST, elf.stream.seek(0, os.SEEK_END)
        for section in elf.iter_sections():
            address, size, flags = section["sh_addr"], section["sh_size"], section["sh_flags"]
            if self.relocatable and flags & SH_FLAGS.SHF_ALLOC:
                address = following + -following % max(section["sh_addralign"], 1)
                following = address + size + _GAP
            self.addresses.append(address)
            if flags & SH_FLAGS.SHF_ALLOC and not flags & SH_FLAGS.SHF_TLS:
                self._sections.append((address, address + size, section.name))
            in_file = section["sh_type"] != "SHT_NOBITS" and section["sh_offset"] + size <= available
            if flags & SH_FLAGS.SHF_EXECINSTR and size and in_file:
                self.code.append((address, address + size))
        self._sections.sort()
        self.code.sort()

    def code_end(self, address: int) -> int | None:
        """Return where the section with an instruction's address ends; ``None`` where there is no code."""
        at = bisect_right(self.code, (address, _BEYOND)) - 1
        return self.code[at][1] if at >= 0 and address < self.code[at][1] else None

    def spot(self, address: int) -> FileAddress:
        """Return what an address is called."""
        at = bisect_right(self._sections, (address, _BEYOND)) - 1
        start, end, name = self._sections[at] if at >= 0 else (0, 0, "")
        if not start <= address < end:
            return FileAddress("", address, False)
        return FileAddress(name, address - start if self.relocatable else address, self.relocatable)
