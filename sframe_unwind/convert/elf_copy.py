"""Makes a copy of a linked ELF file with one more section, loaded or not, at its end.

No address of code or data changes, so symbols, relocations and separate debug files stay valid.  LIEF 1.0 would move
the code of a position-independent file by a page, which makes them invalid, and writes neither the section type
SHT_GNU_SFRAME nor the segment type PT_GNU_SFRAME.
"""

from __future__ import annotations

from pathlib import Path

from sframe_unwind.convert.front import Records
from sframe_unwind.convert.room import ALIGNMENT, Room, room_for
from sframe_unwind.convert.section_order import SYMBOL_TABLES, SectionOrder
from sframe_unwind.convert.writing import Chunk, copy_start, write_chunks, written
from sframe_unwind.elf import ElfBinary
from sframe_unwind.elf.constants import SHF_ALLOC, SHT_STRTAB
from sframe_unwind.elf.records import SectionHeader, encoded
from sframe_unwind.errors import FileError
from sframe_unwind.named_tuple import NamedTuple

_HEADERS = ".elf_headers"
"""Name of the section that covers a file header that stays in memory."""


class NewSection(NamedTuple):
    """A section to add, or to replace one with the same name."""

    name: str
    type: int
    data: bytes
    segment: int | None
    """Type of its segment; ``None``: it is not loaded."""


class ElfCopy:
    """A linked ELF file that gets one more section.

    :param file: the file, which stays open until the copy is written.
    :param name: name of the section.
    :param segment: type of the segment of the section; ``None``: the section will not be loaded.
    :raises FileError: the file is truncated, its sections have no names, or it has no room for another one.
    """

    def __init__(self, file: ElfBinary, name: str, segment: int | None) -> None:
        header = file.header
        if header.shoff and not header.shnum:
            raise FileError("more than 65,279 sections, which a copy cannot have")
        self._records = Records(file, header, list(file.segments), list(file.sections))
        sections = self._records.sections
        self._names = b""
        if sections:
            if not 0 < header.shstrndx < len(sections):
                raise FileError("no section names, to which the name of the new section would be added")
            self._names = file.section_names
        self._number = self._number_of(name)
        self._room: Room | None = None if segment is None else room_for(self._records, segment, self._number)

    @property
    def address(self) -> int:
        """Address of the section; 0: it is not loaded."""
        return 0 if self._room is None else self._room.section_address

    @property
    def survives_strip(self) -> bool:
        """Whether the copy stays loadable when tools such as strip and objcopy rewrite it."""
        return self._room is None or self._room.survives_strip

    def write(self, path: Path, section: NewSection) -> None:
        """Write the copy with the section.

        :param section: the section, with the name and the type of segment that were given to the constructor.
        """
        file, room = self._records.file, self._room
        shift, kept = (0, file.size) if room is None else (room.shift, room.kept)
        copy_start(file, kept, path, shift)
        write_chunks(path, self._chunks(section))

    def _chunks(self, section: NewSection) -> list[Chunk]:
        """Return the bytes to write over and after the kept part of the file: headers, and sections."""
        records, room = self._records, self._room
        header = records.header
        added: list[Chunk] = []
        offset = records.file.size + -records.file.size % ALIGNMENT
        sections = records.sections
        if room is not None and section.segment is not None:
            offset, sections = room.section_offset, room.sections
            program = room.program_headers(section.segment, len(section.data), records.byteorder)
            added += [*room.chunks, Chunk(room.phoff, encoded(program, records.byteorder))]
            header = header._replace(phoff=room.phoff, phnum=len(program))
        added.append(Chunk(offset, section.data))
        if sections:
            end = offset + len(section.data)
            names, placed = self._section_headers(sections, section, offset, end + -end % ALIGNMENT)
            order = SectionOrder(placed)
            if not order.is_kept:
                added += self._symbol_tables(placed, order, added)
            at = names.offset + len(names.data) + -(names.offset + len(names.data)) % ALIGNMENT
            added += [names, Chunk(at, encoded(order.headers(), records.byteorder))]
            header = header._replace(shoff=at, shnum=len(placed), shstrndx=order.number(header.shstrndx))
        return [Chunk(0, encoded([header], records.byteorder)), *added]

    def _section_headers(
        self, before: list[SectionHeader], section: NewSection, offset: int, end: int
    ) -> tuple[Chunk, list[SectionHeader]]:
        """Return the names of all sections, to be written at an offset, and the headers, numbered as before."""
        sections, index = list(before), self._records.header.shstrndx
        number, names = self._number, self._names
        if number is None:
            name, names = len(names), names + section.name.encode() + b"\0"
        else:
            name = sections[number].name_offset
        if self._room is not None and self._room.headers_section is not None:
            sections.append(self._room.headers_section._replace(name_offset=len(names)))
            names += _HEADERS.encode() + b"\0"
        # The names are always written anew, because the old ones may be after the kept part of the file.
        sections[index] = sections[index]._replace(type=SHT_STRTAB, offset=end, size=len(names))
        flags = 0 if self._room is None else SHF_ALLOC
        added = SectionHeader(
            name_offset=name,
            type=section.type,
            flags=flags,
            address=self.address,
            offset=offset,
            size=len(section.data),
            alignment=ALIGNMENT,
        )
        if number is None:
            sections.append(added)
        else:
            sections[number] = added
        return Chunk(end, names), sections

    def _symbol_tables(self, sections: list[SectionHeader], order: SectionOrder, chunks: list[Chunk]) -> list[Chunk]:
        """Return the symbol tables with the new numbers of sections.

        :param sections: the section headers with their new places.
        :param chunks: the bytes that are written to the copy before.
        :raises FileError: the file ends before the symbols do.
        """
        file, shift = self._records.file, 0 if self._room is None else self._room.shift
        tables = []
        for one in sections:
            if one.type in SYMBOL_TABLES:
                before = file.read(one.offset - shift, one.size) if one.offset >= shift else b""
                table = written(chunks, one.offset, one.size, before)
                if table is None:
                    raise FileError(f"truncated: no symbols at {one.offset - shift:#x}, the file has {file.size:#x}")
                tables.append(Chunk(one.offset, order.symbols(table, self._records.byteorder)))
        return tables

    def _number_of(self, name: str) -> int | None:
        """Return the number of the section with a name; ``None``: there is none."""
        wanted = name.encode() + b"\0"
        for number, section in enumerate(self._records.sections):
            if number and self._names.startswith(wanted, section.name_offset):
                return number
        return None
