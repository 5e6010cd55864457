"""Reads the headers and the contents of ELF files with pyelftools, within limits.

pyelftools reads a header each time it is requested, follows header numbers that the file cannot hold, and decodes
sections of many kinds when they are listed.  Here, the headers are checked and decoded once, and a section has only
its header, name and contents.

Each call into pyelftools is inside :func:`translated`, and no other code is: an exception that a caller of this module
raises by mistake must not look like a malformed file.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import BinaryIO, NamedTuple

from elftools.elf.descriptions import describe_reloc_type
from elftools.elf.elffile import ELFFile
from elftools.elf.enums import ENUM_E_MACHINE

from sframe_unwind.address import ByteOrder
from sframe_unwind.elf.constants import PN_XNUM, PT_LOAD, SHF_COMPRESSED, SHT_NOBITS
from sframe_unwind.errors import FileError, MissingExtraError, SFrameError, counted
from sframe_unwind.image.decompression import SECTION_ZLIB, DecompressionError, section_contents
from sframe_unwind.memory import STRUCT_MARKS

_SECTION, _SEGMENT = "IIQQQQIIQQ", "IIQQQQQQ"
"""The fields of ``Elf64_Shdr`` and ``Elf64_Phdr`` as :mod:`struct` formats."""
_COMPRESSION = "I4xQQ"
"""Those of ``Elf64_Chdr``: type, size, alignment."""
_MAX_NAME = 1024
"""Maximum number of bytes of a section's name."""
_OVERLAP = 2
"""How many sections may contain one byte of the file, on average.  In files of real producers no two sections overlap;
without a limit, 60,000 headers of one section make 60,000 times the work."""
_MAX_GROWTH, _ALWAYS = 100, 1 << 20
"""Maximum ratio of the size of a section to its compressed size, and the size in bytes that is always allowed.  The
ratio of real ``.debug_frame`` sections is 3 to 10; zlib can reach 1,000."""
_OLD_MAGIC = b"ZLIB"
"""First bytes of a section that GNU tools compressed before 2014; its size follows."""
_COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\0": "xz",
    b"BZh": "bzip2",
    b"\x04\x22\x4d\x18": "lz4",
}
"""Programs that compress files, by the first bytes of their files."""


@contextmanager
def translated(what: str = "not a readable ELF file") -> Iterator[None]:
    """Convert the exceptions of pyelftools to :class:`FileError`.  The block contains only calls into pyelftools.

    :param what: start of the message.
    """
    try:
        yield
    except (SFrameError, OSError, MemoryError):  # of the stream that pyelftools reads
        raise
    except Exception as error:
        # On malformed files, pyelftools raises exceptions of many types: ELFError, those of construct, KeyError,
        # UnicodeDecodeError and others.
        raise FileError(f"{what}: {str(error) or type(error).__name__}") from error


class ElfSection(NamedTuple):
    """The header of a section.  Sizes and offsets are in bytes."""

    number: int
    name: str
    type: int
    flags: int
    address: int
    offset: int
    """Offset of the contents in the file."""
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int

    @property
    def has_contents(self) -> bool:
        """Whether the file has contents for it; a separate debug file keeps only the headers of loaded sections."""
        return self.type != SHT_NOBITS

    @property
    def end(self) -> int:
        """End address (exclusive)."""
        return self.address + self.size


class ElfSegment(NamedTuple):
    """The header of a segment.  Sizes and offsets are in bytes."""

    type: int
    flags: int
    offset: int
    """Offset of the contents in the file."""
    address: int
    physical: int
    file_size: int
    memory_size: int
    alignment: int


class Reader:
    """A 64-bit ELF file.

    :param stream: the file, which stays open as long as this object is used.
    :raises FileError: it is not a 64-bit ELF file; a compressed one is not.
    """

    def __init__(self, stream: BinaryIO) -> None:
        start = stream.read(8)
        stream.seek(0)
        if not start:
            raise FileError("the file is empty")
        for magic, program in _COMPRESSED.items():
            if start.startswith(magic):
                raise FileError(f"compressed; {program} -d decompresses it")
        with translated():
            self._elf = ELFFile(stream)
        if self._elf.elfclass != 64:
            raise FileError("a 32-bit ELF file; SFrame exists for 64-bit ABIs only")
        self._stream = stream
        self._header = self._elf.header
        self.size: int = stream.seek(0, os.SEEK_END)
        """Size of the file, in bytes."""
        self.byteorder: ByteOrder = "little" if self._elf.little_endian else "big"
        self.machine = str(self._header["e_machine"])
        """``e_machine`` as pyelftools names it: ``EM_X86_64``; a number that it does not know, in digits."""
        self.type_name = str(self._header["e_type"])
        """``e_type``, likewise: ``ET_REL``."""
        self.is_object = self.type_name == "ET_REL"
        """It is not linked: its sections have no addresses."""
        self.entry_point: int = self._header["e_entry"]
        """Address of the entry point; 0: there is none."""
        self._mark = STRUCT_MARKS[self.byteorder]

    def read(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes of the file at ``offset``; fewer at its end."""
        if offset >= self.size:
            return b""
        self._stream.seek(offset)
        return self._stream.read(min(size, self.size - offset))

    @cached_property
    def descriptor(self) -> int | None:
        """The descriptor of the file; ``None``: the stream is a part of one, or in memory."""
        with suppress(OSError):
            return self._stream.fileno()
        return None

    def whole(self) -> bytes:
        """Return the bytes of the file."""
        return self.read(0, self.size)

    def contents(self, section: ElfSection) -> bytes:
        """Return the contents of a section, decompressed; empty for a section without contents in the file.

        If the file ends before the section does, the contents end there.

        :raises FileError: it is compressed, and is not whole, cannot be decompressed or has an implausibly large size.
        """
        if not section.has_contents:
            return b""
        if not section.flags & SHF_COMPRESSED:
            return self.read(section.offset, section.size)
        if section.offset + section.size > self.size:
            raise FileError(
                f"{section.name} is compressed, and ends at {section.offset + section.size:#x}, after the file"
            )
        data = self.read(section.offset, section.size)
        header = struct.Struct(self._mark + _COMPRESSION)
        if len(data) < header.size:
            raise FileError(f"{section.name} is compressed, and has no compression header")
        kind, size, _ = header.unpack_from(data)
        return self._decompressed(section, kind, data[header.size :], size)

    def decompressed(self, section: ElfSection) -> bytes:
        """Return the contents of a section, decompressed even if GNU tools compressed it before 2014.

        :raises FileError: see :meth:`contents`.
        """
        data = self.contents(section)
        if not section.name.startswith(".z"):
            return data
        if data[:4] != _OLD_MAGIC:
            raise FileError(f"{section.name} is not compressed as its name says")
        return self._decompressed(section, SECTION_ZLIB, data[12:], int.from_bytes(data[4:12], "big"))

    def _decompressed(self, section: ElfSection, kind: int, data: bytes, size: int) -> bytes:
        self._check_growth(section, size)
        try:
            return section_contents(kind, data, size)
        except (DecompressionError, MissingExtraError) as error:
            raise FileError(f"{section.name} cannot be decompressed: {error}") from error

    def _check_growth(self, section: ElfSection, size: int) -> None:
        if size > max(_MAX_GROWTH * section.size, _ALWAYS):
            claim = f"{counted(size, 'byte', spec=',')} compressed to {section.size:,}"
            raise FileError(f"{section.name} claims to be {claim}, more than {_MAX_GROWTH} to 1")

    def relocation_name(self, kind: int) -> str:
        """Return the name of a relocation type of the file's machine, such as ``R_X86_64_PLT32``."""
        with translated():
            name = str(describe_reloc_type(kind, self._elf))
        return name if name.startswith("R_") else f"type {kind}"

    def section(self, number: int) -> ElfSection:
        """Return a section by its number.

        :raises FileError: there is none with this number; see also :attr:`sections`.
        """
        if number >= len(self.sections):
            raise FileError(f"no section {number}, of {len(self.sections)}")
        return self.sections[number]

    def strings(self, symbols: ElfSection) -> bytes:
        """Return the string table of a symbol table.

        :raises FileError: the file does not have it.
        """
        return self.contents(self.section(symbols.link))

    def records(self, layout: str, data: bytes) -> Iterator[tuple[int, ...]]:
        """Yield the records of a table in the byte order of the file.

        :param layout: :mod:`struct` format of a record, without byte order.
        """
        # pyelftools creates an object for each record, which takes more than ten times as long.
        record = struct.Struct(self._mark + layout)
        return record.iter_unpack(data[: len(data) // record.size * record.size])

    @cached_property
    def sections(self) -> tuple[ElfSection, ...]:
        """All sections.

        :raises FileError: the headers are outside the file, or the sections overlap.
        """
        with translated():
            count = self._elf.num_sections()
        headers = self._headers("section", self._header["e_shoff"], count, self._header["e_shentsize"], _SECTION)
        kept = [header for header in headers if header[1] != SHT_NOBITS]
        self._check_overlap("sections", [(header[4], header[5]) for header in kept])
        names = self._section_names(headers)
        return tuple(ElfSection(number, _name(names, header[0]), *header[1:]) for number, header in enumerate(headers))

    def _section_names(self, headers: list[tuple[int, ...]]) -> bytes:
        with translated():
            number = self._elf.get_shstrndx()
        if number >= len(headers) or headers[number][1] == SHT_NOBITS:
            return b""
        return self.read(*headers[number][4:6])

    @cached_property
    def segments(self) -> tuple[ElfSegment, ...]:
        """All segments.

        :raises FileError: the headers are outside the file, or the segments overlap.
        """
        place = self._header["e_phoff"], self._segment_count(), self._header["e_phentsize"]
        segments = tuple(ElfSegment(*header) for header in self._headers("program", *place, _SEGMENT))
        whole = [segment for segment in segments if segment.type != PT_LOAD]  # of these, parts are read
        self._check_overlap("segments", [(segment.offset, segment.file_size) for segment in whole])
        return segments

    @property
    def program_headers(self) -> tuple[int, int]:
        """Offset of the program headers in the file, and the offset after the last one."""
        start: int = self._header["e_phoff"]
        return start, start + self._segment_count() * int(self._header["e_phentsize"])

    def _segment_count(self) -> int:
        count: int = self._header["e_phnum"]
        return self.sections[0].info if count >= PN_XNUM and self.sections else count

    def _headers(self, what: str, offset: int, count: int, size: int, layout: str) -> list[tuple[int, ...]]:
        if not count:
            return []
        header = struct.Struct(self._mark + layout)
        if size != header.size:
            raise FileError(f"{what} headers of {counted(size, 'byte')}, expected {header.size}")
        data = self.read(offset, count * size) if offset + count * size <= self.size else b""
        if len(data) != count * size:  # or the file became shorter since it was opened
            raise FileError(f"truncated after {self.size:,} bytes, its {what} headers end at {offset + count * size:,}")
        return list(header.iter_unpack(data))

    def _check_overlap(self, what: str, parts: list[tuple[int, int]]) -> None:
        contained = sum(min(size, max(self.size - offset, 0)) for offset, size in parts)
        if contained > _OVERLAP * self.size:
            raise FileError(f"{len(parts):,} {what} of {contained:,} bytes in all, in a file of {self.size:,}")


def machine_number(name: str) -> int:
    """Return the ``e_machine`` of a name."""
    return int(ENUM_E_MACHINE[name])


def _name(names: bytes, offset: int) -> str:
    return names[offset : offset + _MAX_NAME].partition(b"\0")[0].decode("utf-8", "backslashreplace")
