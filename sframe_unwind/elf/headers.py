"""The headers of an ELF file, read when they are first needed, within the limits of a file.

This needs no package and imports little, because a plugin asks it about each file that a debugger loads.
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import BinaryIO

from sframe_unwind.elf.constants import (
    ARCHIVE_MAGIC,
    PN_XNUM,
    PT_LOAD,
    SHN_XINDEX,
    SHT_NOBITS,
    THIN_ARCHIVE_MAGIC,
)
from sframe_unwind.elf.records import HEADER_SIZE, ProgramHeader, Record, SectionHeader, decoded, file_header, layout
from sframe_unwind.errors import FileError, counted

_MAX_NAME = 1024
"""Maximum number of bytes of a section's name."""
_OVERLAP = 2
"""How many sections may contain one byte of the file, on average.  In files of real producers no two sections overlap;
without a limit, 60,000 headers of one section make 60,000 times the work."""
_COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\0": "xz",
    b"BZh": "bzip2",
    b"\x04\x22\x4d\x18": "lz4",
}
"""Programs that compress files, by the first bytes of their files."""


class Headers:
    """The headers of a 64-bit ELF file.

    :param stream: the file, which stays open as long as this object is used.
    :raises FileError: it is not a 64-bit ELF file; a compressed one is not.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.size: int = stream.seek(0, os.SEEK_END)
        """Size of the file, in bytes."""
        start = self.read(0, HEADER_SIZE)
        if not start:
            raise FileError("the file is empty")
        for magic, program in _COMPRESSED.items():
            if start.startswith(magic):
                raise FileError(f"compressed; {program} -d decompresses it")
        if start.startswith(ARCHIVE_MAGIC):
            raise FileError("an archive, expected one of its members: `ar x` extracts them")
        if start.startswith(THIN_ARCHIVE_MAGIC):
            raise FileError("a thin archive, expected one of the files that it names")
        self.header = file_header(start)
        self.byteorder = self.header.byteorder

    def read(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes of the file at ``offset``; fewer at its end."""
        if offset >= self.size:
            return b""
        self._stream.seek(offset)
        return self._stream.read(min(size, self.size - offset))

    @cached_property
    def segments(self) -> tuple[ProgramHeader, ...]:
        """All segments.

        :raises FileError: the headers are outside the file, or the segments overlap.
        """
        header = self.header
        place = header.phoff, self._segment_count(), header.phentsize
        segments = self._table(ProgramHeader, "program", *place)
        whole = [segment for segment in segments if segment.type != PT_LOAD]  # of these, parts are read
        self._check_overlap("segments", [(segment.offset, segment.file_size) for segment in whole])
        return segments

    @property
    def program_headers(self) -> tuple[int, int]:
        """Offset of the program headers in the file, and the offset after the last one."""
        start = self.header.phoff
        return start, start + self._segment_count() * self.header.phentsize

    def _segment_count(self) -> int:
        count = self.header.phnum
        return self.unnamed_sections[0].info if count >= PN_XNUM and self.unnamed_sections else count

    @cached_property
    def unnamed_sections(self) -> tuple[SectionHeader, ...]:
        """The headers of all sections without their numbers and names, which take most of the time.

        :raises FileError: the headers are outside the file, or the sections overlap.
        """
        header, count = self.header, self.header.shnum
        if not header.shoff:
            return ()
        if not count:  # it does not fit, and is in the first section header (ELF gABI, chapter 4)
            (first,) = self._table(SectionHeader, "section", header.shoff, 1, header.shentsize)
            count = first.size
        sections = self._table(SectionHeader, "section", header.shoff, count, header.shentsize)
        self._check_overlap("sections", [(one.offset, one.size) for one in sections if one.has_contents])
        return sections

    @cached_property
    def sections(self) -> tuple[SectionHeader, ...]:
        """All sections.

        :raises FileError: the headers are outside the file, or the sections overlap.
        """
        names = self.section_names
        return tuple(
            SectionHeader(*one[:-2], number=number, name=_name(names, one.name_offset))
            for number, one in enumerate(self.unnamed_sections)
        )

    @property
    def names_number(self) -> int:
        """The number of the section with the names of the sections."""
        index, sections = self.header.shstrndx, self.unnamed_sections
        return sections[0].link if index == SHN_XINDEX and sections else index

    @cached_property
    def section_names(self) -> bytes:
        """The contents of the section with the names; empty: there is none."""
        number, sections = self.names_number, self.unnamed_sections
        if number >= len(sections) or sections[number].type == SHT_NOBITS:
            return b""
        return self.read(sections[number].offset, sections[number].size)

    def _table(self, kind: type[Record], what: str, offset: int, count: int, size: int) -> tuple[Record, ...]:
        if not count:
            return ()
        expected = layout(kind, self.byteorder).size
        if size != expected:
            raise FileError(f"{what} headers of {counted(size, 'byte')}, expected {expected}")
        data = self.read(offset, count * size) if offset + count * size <= self.size else b""
        if len(data) != count * size:  # or the file became shorter since it was opened
            raise FileError(f"truncated after {self.size:,} bytes, its {what} headers end at {offset + count * size:,}")
        return tuple(decoded(kind, data, self.byteorder))

    def _check_overlap(self, what: str, parts: list[tuple[int, int]]) -> None:
        contained = sum(min(size, max(self.size - offset, 0)) for offset, size in parts)
        if contained > _OVERLAP * self.size:
            raise FileError(f"{len(parts):,} {what} of {contained:,} bytes in all, in a file of {self.size:,}")


def _name(names: bytes, offset: int) -> str:
    return names[offset : offset + _MAX_NAME].partition(b"\0")[0].decode("utf-8", "backslashreplace")
