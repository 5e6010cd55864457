"""A copy of a linked ELF file with one more section, loaded or not, at its end.

No byte of the file moves and no address changes, so symbols, relocations and separate debug files stay right.  LIEF 1.0
would move the code of a position-independent file by a page, which they would not, and writes neither the section type
SHT_GNU_SFRAME nor the segment type PT_GNU_SFRAME.
"""

from __future__ import annotations

from typing import NamedTuple

from sframe_unwind.convert.elf_records import (
    PF_R,
    PN_XNUM,
    PT_LOAD,
    PT_PHDR,
    SHF_ALLOC,
    SHT_STRTAB,
    FileHeader,
    ProgramHeader,
    SectionHeader,
    layout,
    read_records,
    write_records,
)
from sframe_unwind.convert.writing import Chunk
from sframe_unwind.errors import FileError

_ALIGNMENT = 8
_MAX_HOLE = 1 << 32
"""Bytes that the copy may be longer than the file, for variables that are in memory only; they take no disk space."""
_MAX_ALIGNMENT = 1 << 24


class NewSection(NamedTuple):
    """A section to add, or to put in the place of one with the same name."""

    name: str
    type: int
    data: bytes
    segment: int | None
    """Type of the segment that it gets; ``None``: it is not loaded."""


class ElfCopy:
    """A linked ELF file that gets one more section.

    :param data: the file.
    :param byteorder: ``"little"`` or ``"big"``.
    :param segment: type of the segment of the section that will be loaded; ``None``: it will not be.
    :raises FileError: the file is truncated, its sections have no names, or it has no room for another one.
    """

    def __init__(self, data: bytes, byteorder: str, segment: int | None) -> None:
        self._data = data
        self._order = byteorder
        self._segment = segment
        self._header = read_records(data, 0, 1, FileHeader, byteorder)[0]
        self._program = read_records(data, self._header.phoff, self._header.phnum, ProgramHeader, byteorder)
        self._sections = read_records(data, self._header.shoff, self._header.shnum, SectionHeader, byteorder)
        if self._header.shoff and not self._header.shnum:
            raise FileError("more than 65,279 sections, which a copy cannot have")
        self._names = b""
        if self._sections:
            if not 0 < self._header.shstrndx < len(self._sections):
                raise FileError("no section names, to which the name of the new section would be added")
            names = self._sections[self._header.shstrndx]
            self._names = data[names.offset : names.offset + names.size]
        self._offset = len(data) + -len(data) % _ALIGNMENT
        self._section_offset = self._offset
        self.address = 0
        """Address of the section; 0: it is not loaded."""
        if segment is not None:
            self._make_room(segment)

    def _make_room(self, segment: int) -> None:
        """Choose where the new segment with the program headers and the section goes."""
        loads = [header for header in self._program if header.type == PT_LOAD]
        if not loads:
            raise FileError("no loaded segment")
        count = len(self._program) + 1 + (not any(header.type == segment for header in self._program))
        if self._header.phnum == PN_XNUM or count >= PN_XNUM:
            raise FileError(f"{count} program headers, more than a copy can have")
        self._alignment = max(header.align for header in loads)
        if not 0 < self._alignment <= _MAX_ALIGNMENT or self._alignment & self._alignment - 1:
            raise FileError(f"segments with the alignment {self._alignment:#x}")
        # Kernels before 5.18 take the address of the program headers to be that of the first segment plus their
        # offset in the file, so the new segment lies as far from the first in memory as in the file.
        bias = loads[0].vaddr - loads[0].offset
        end = max(max(header.vaddr + header.memsz for header in loads) - bias, len(self._data))
        self._offset = end + -end % self._alignment
        if self._offset + bias < 0 or (self._offset + bias) % self._alignment:
            raise FileError("a first segment that is not aligned")
        if self._offset - len(self._data) > _MAX_HOLE:
            raise FileError(f"segments up to {end + bias:#x}, too far from each other for a copy")
        self._section_offset = self._offset + count * layout(ProgramHeader, self._order).size
        self._section_offset += -self._section_offset % _ALIGNMENT
        self.address = self._section_offset + bias
        self._bias = bias

    def chunks(self, section: NewSection) -> list[Chunk]:
        """Return what to write into a copy of the file, so that it has the section."""
        header, added = self._header, []
        if self._segment is not None:
            program = self._program_headers(self._segment, len(section.data))
            added.append(Chunk(self._offset, write_records(program, self._order)))
            header = header._replace(phoff=self._offset, phnum=len(program))
        added.append(Chunk(self._section_offset, section.data))
        if self._sections:
            end = self._section_offset + len(section.data)
            added += self._section_headers(section, end + -end % _ALIGNMENT)
            header = header._replace(shoff=added[-1].offset, shnum=len(added[-1].data) // header.shentsize)
        return [Chunk(0, write_records([header], self._order)), *added]

    def _program_headers(self, segment: int, size: int) -> list[ProgramHeader]:
        start = self._offset + self._bias
        length = self._section_offset + size - self._offset
        load = ProgramHeader(PT_LOAD, PF_R, self._offset, start, start, length, length, self._alignment)
        own = ProgramHeader(segment, PF_R, self._section_offset, self.address, self.address, size, size, _ALIGNMENT)
        headers = [own if header.type == segment else header for header in self._program]
        if own not in headers:
            headers.append(own)
        last = max(number for number, header in enumerate(headers) if header.type == PT_LOAD)
        headers.insert(last + 1, load)  # segments are in the order of their addresses
        table = len(headers) * layout(ProgramHeader, self._order).size
        place = ProgramHeader(PT_PHDR, PF_R, self._offset, start, start, table, table, _ALIGNMENT)
        return [place if header.type == PT_PHDR else header for header in headers]

    def _section_headers(self, section: NewSection, end: int) -> list[Chunk]:
        """Return the names and the headers of all sections, to be written from an offset on; headers last."""
        sections = list(self._sections)
        number, name = self._named(section.name)
        names = self._names
        if number is None:
            name, names = len(names), names + section.name.encode() + b"\0"
            sections[self._header.shstrndx] = sections[self._header.shstrndx]._replace(
                type=SHT_STRTAB, offset=end, size=len(names)
            )
        flags = 0 if self._segment is None else SHF_ALLOC
        place = self.address, self._section_offset, len(section.data)
        added = SectionHeader(name, section.type, flags, *place, 0, 0, _ALIGNMENT, 0)
        if number is None:
            sections.append(added)
        else:
            sections[number] = added
        headers = end + len(names) + -(end + len(names)) % _ALIGNMENT
        return [Chunk(end, names), Chunk(headers, write_records(sections, self._order))]

    def _named(self, name: str) -> tuple[int | None, int]:
        """Return the number of the section with a name, and where the name is; ``None``: there is none."""
        wanted = name.encode() + b"\0"
        for number, section in enumerate(self._sections):
            if number and self._names.startswith(wanted, section.name):
                return number, section.name
        return None, 0
