"""Puts the section headers of a copy into the order of their places in the file.

``convert`` moves sections from the front of a file to its end. patchelf moves the sections at the front, too, and takes
the first ones in the table of section headers for these, so the order of that table must be right.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence

from sframe_unwind.address import ByteOrder
from sframe_unwind.elf.constants import SHF_ALLOC, SHF_INFO_LINK, SHT_DYNSYM, SHT_NOBITS, SHT_REL, SHT_RELA, SHT_SYMTAB
from sframe_unwind.elf.records import SectionHeader, Symbol, layout

SYMBOL_TABLES = (SHT_SYMTAB, SHT_DYNSYM)
_HALVES, _SHNDX = 12, 3
"""A symbol has 12 halfwords; the fourth is the number of its section."""


class SectionOrder:
    """The new order of the sections of a file.

    :param sections: the section headers, with the places that they will have.
    """

    def __init__(self, sections: Sequence[SectionHeader]) -> None:
        places = _places(sections)
        self._order = [0, *sorted(range(1, len(sections)), key=places.__getitem__)]
        self._numbers = [0] * len(sections)
        for new, old in enumerate(self._order):
            self._numbers[old] = new
        self._sections = sections

    @property
    def is_kept(self) -> bool:
        """Whether the sections are in order already."""
        return self._order == sorted(self._order)

    def number(self, old: int) -> int:
        """Return the new number of a section; a number that no section has stays what it is."""
        return self._numbers[old] if 0 <= old < len(self._numbers) else old

    def headers(self) -> list[SectionHeader]:
        """Return the section headers in the new order, with new numbers where one refers to another."""
        return [self._renumbered(self._sections[old]) for old in self._order]

    def _renumbered(self, section: SectionHeader) -> SectionHeader:
        has_number = section.type in (SHT_REL, SHT_RELA) or section.flags & SHF_INFO_LINK
        info = self.number(section.info) if has_number else section.info
        return section._replace(link=self.number(section.link), info=info)

    def symbols(self, table: bytes, byteorder: ByteOrder) -> bytes:
        """Return the contents of a table of symbols with the new numbers of their sections."""
        size = layout(Symbol, byteorder).size
        end = len(table) // size * size
        halves = array("H", table[:end])
        if byteorder != sys.byteorder:
            halves.byteswap()
        halves[_SHNDX::_HALVES] = array("H", map(self.number, halves[_SHNDX::_HALVES]))
        if byteorder != sys.byteorder:
            halves.byteswap()
        return halves.tobytes() + table[end:]


def _places(sections: Sequence[SectionHeader]) -> list[tuple[int, int]]:
    """Return the sort keys of the sections: their offsets, and the order that they had.

    Sections without contents have any offset, 0 if mold linked the file; they stay behind those before them in memory.
    """
    loaded = [(one.address, number) for number, one in enumerate(sections) if one.flags & SHF_ALLOC]
    offsets, end = [one.offset for one in sections], 0
    for _, number in sorted(loaded):
        section = sections[number]
        if section.type == SHT_NOBITS:
            offsets[number] = end
        else:
            end = section.offset + section.size
    return [(offset, number) for number, offset in enumerate(offsets)]
