"""Reads the headers of a 64-bit ELF file, and the contents of its sections and segments.

Nothing is taken from a header that the file cannot hold: numbers of headers, places of sections and sizes of compressed
sections are checked against the size of the file first.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from functools import cached_property
from typing import Any, BinaryIO

from sframe_unwind.elf.constants import FILE_TYPES, MACHINES, SECTION_TYPES, SEGMENT_TYPES, SHF_COMPRESSED
from sframe_unwind.errors import FileError
from sframe_unwind.memory import STRUCT_MARKS

_HEADER = (
    "HHIQQQIHHHHHH",
    *("e_type", "e_machine", "e_version", "e_entry", "e_phoff", "e_shoff", "e_flags", "e_ehsize"),
    *("e_phentsize", "e_phnum", "e_shentsize", "e_shnum", "e_shstrndx"),
)
_SECTION = (
    "IIQQQQIIQQ",
    *("sh_name", "sh_type", "sh_flags", "sh_addr", "sh_offset"),
    *("sh_size", "sh_link", "sh_info", "sh_addralign", "sh_entsize"),
)
_SEGMENT = ("IIQQQQQQ", "p_type", "p_flags", "p_offset", "p_vaddr", "p_paddr", "p_filesz", "p_memsz", "p_align")
"""``Elf64_Ehdr`` behind ``e_ident``, ``Elf64_Shdr``, ``Elf64_Phdr``: layout for :mod:`struct`, names of the fields."""
_COMPRESSION = "I4xQ8x"
"""The fields of ``Elf64_Chdr`` that are used: type and uncompressed size."""
_MAGIC = b"\x7fELF"
_IDENT_SIZE = 16
_CLASS_64, _ORDERS = 2, {1: "little", 2: "big"}
_ELFCOMPRESS_ZLIB = 1
_PN_XNUM, _SHN_XINDEX = 0xFFFF, 0xFFFF
"""In the place of the number of program headers, or of the section of names: it is in section 0."""
_MAX_NAME = 1024
"""Bytes of a section's name."""
_OVERLAP = 2
"""How many sections may contain one byte of the file, on average.  In files of real producers no two sections overlap;
without a limit, 60,000 headers of one section make 60,000 times the work."""
_MAX_GROWTH, _ALWAYS = 100, 1 << 20
"""Maximum ratio of the size of a section to its compressed size, and the size in bytes that is always allowed.  The
ratio of real ``.debug_frame`` sections is 3 to 10; zlib can reach 1,000."""
_COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\0": "xz",
    b"BZh": "bzip2",
    b"\x04\x22\x4d\x18": "lz4",
}
"""Programs that compress files, by the bytes that their files begin with."""


class Part:
    """A section or a segment: its header, whose fields have the names of the gABI, and its contents.

    :param header: the fields of its header.
    :param file: the file that it is of.
    """

    def __init__(self, header: dict[str, Any], file: Elf) -> None:
        self._header = header
        self._file = file

    def __getitem__(self, field: str) -> Any:
        return self._header[field]


class ElfSection(Part):
    """A section.

    :param name: its name; empty: not known.
    """

    def __init__(self, header: dict[str, Any], file: Elf, name: str) -> None:
        super().__init__(header, file)
        self.name = name

    def data(self) -> bytes:
        """Return the contents, decompressed; empty for a section without contents in the file.

        :raises FileError: the section cannot be decompressed, or its decompressed size is implausibly large.
        """
        if self["sh_type"] == "SHT_NOBITS":
            return b""
        stored = self._file.contents(self["sh_offset"], self["sh_size"])
        return self._decompressed(stored) if self["sh_flags"] & SHF_COMPRESSED else stored

    def _decompressed(self, stored: bytes) -> bytes:
        header = struct.Struct(STRUCT_MARKS[self._file.byteorder] + _COMPRESSION)
        if len(stored) < header.size:
            raise FileError(f"{self.name} is compressed, and has {len(stored)} bytes")
        kind, size = header.unpack_from(stored)
        if kind != _ELFCOMPRESS_ZLIB:
            raise FileError(f"{self.name} is compressed by method {kind}, expected 1 (zlib)")
        if size > max(_MAX_GROWTH * len(stored), _ALWAYS):
            raise FileError(
                f"{self.name} claims to be {size:,} bytes compressed to {len(stored):,}, more than {_MAX_GROWTH} to 1"
            )
        try:
            data = zlib.decompressobj().decompress(stored[header.size :], size + 1)
        except zlib.error as error:
            raise FileError(f"{self.name} cannot be decompressed: {error}") from error
        if len(data) != size:
            raise FileError(f"{self.name} claims to be {size:,} bytes, and decompresses to another number")
        return data


class ElfSegment(Part):
    """A segment."""

    def data(self) -> bytes:
        """Return the contents in the file, as far as the file has them."""
        return self._file.contents(self["p_offset"], self["p_filesz"])


class Elf:
    """A 64-bit ELF file.  ``elf["e_type"]`` is a field of its header.

    :param stream: the file, which must stay open.
    :raises FileError: it is no ELF file, compressed or 32-bit.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        start = stream.read(_IDENT_SIZE)
        for magic, program in _COMPRESSED.items():
            if start.startswith(magic):
                raise FileError(f"compressed; {program} -d decompresses it")
        if not start.startswith(_MAGIC) or len(start) < _IDENT_SIZE:
            raise FileError("not a readable ELF file: it does not begin with an ELF header")
        if start[4] != _CLASS_64:
            raise FileError("a 32-bit ELF file; SFrame exists for 64-bit ABIs only")
        if start[5] not in _ORDERS:
            raise FileError(f"not a readable ELF file: byte order {start[5]}, expected 1 or 2")
        self.byteorder = _ORDERS[start[5]]
        """``"little"`` or ``"big"``."""
        layout, *names = _HEADER
        header = struct.Struct(STRUCT_MARKS[self.byteorder] + layout)
        rest = stream.read(header.size)
        if len(rest) < header.size:
            raise FileError("not a readable ELF file: its header is not whole")
        self._header: dict[str, Any] = dict(zip(names, header.unpack(rest)))
        _name(self._header, "e_type", FILE_TYPES)
        _name(self._header, "e_machine", MACHINES)
        self.size = stream.seek(0, os.SEEK_END)
        """Of the file, in bytes."""

    def __getitem__(self, field: str) -> Any:
        return self._header[field]

    @property
    def little_endian(self) -> bool:
        """Whether the file is little-endian."""
        return self.byteorder == "little"

    def contents(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes at an offset of the file; fewer behind its end."""
        if offset >= self.size:
            return b""
        self.stream.seek(offset)
        return self.stream.read(min(size, self.size - offset))

    def iter_sections(self, kind: str | None = None) -> Iterator[ElfSection]:
        """Yield the sections, those of one type (as ``"SHT_RELA"``) if it is given.

        :raises FileError: the headers lie outside the file, or the sections overlap.
        """
        return (section for section in self._sections if kind is None or section["sh_type"] == kind)

    def get_section(self, number: int) -> ElfSection:
        """Return a section by its number.

        :raises FileError: there is none of this number, or as in :meth:`iter_sections`.
        """
        if number >= len(self._sections):
            raise FileError(f"no section {number}, of {len(self._sections)}")
        return self._sections[number]

    def named(self, name: str) -> ElfSection:
        """Return the first section with a name.

        :raises FileError: there is none, or as in :meth:`iter_sections`.
        """
        section = self.get_section_by_name(name)
        if section is None:
            raise FileError(f"no section {name}")
        return section

    def get_section_by_name(self, name: str) -> ElfSection | None:
        """Return the first section with a name, or ``None``.

        :raises FileError: as in :meth:`iter_sections`.
        """
        return next((section for section in self._sections if section.name == name), None)

    def iter_segments(self, kind: str | None = None) -> Iterator[ElfSegment]:
        """Yield the segments, those of one type (as ``"PT_LOAD"``) if it is given.

        :raises FileError: the headers lie outside the file, or the segments overlap.
        """
        return (segment for segment in self._segments if kind is None or segment["p_type"] == kind)

    @cached_property
    def _sections(self) -> list[ElfSection]:
        headers = self._headers("section", self["e_shoff"], self._section_count(), self["e_shentsize"], _SECTION)
        for header in headers:
            _name(header, "sh_type", SECTION_TYPES)
        kept = [header for header in headers if header["sh_type"] != "SHT_NOBITS"]
        self._check_overlap("sections", [(header["sh_offset"], header["sh_size"]) for header in kept])
        names = self._section_names(headers)
        return [ElfSection(header, self, _text(names, header["sh_name"])) for header in headers]

    def _section_count(self) -> int:
        count: int = self["e_shnum"]
        if count or not self["e_shoff"]:
            return count
        return int(self._headers("section", self["e_shoff"], 1, self["e_shentsize"], _SECTION)[0]["sh_size"])

    def _section_names(self, headers: list[dict[str, Any]]) -> bytes:
        number = self["e_shstrndx"]
        if number == _SHN_XINDEX and headers:
            number = headers[0]["sh_link"]
        if number >= len(headers) or headers[number]["sh_type"] == "SHT_NOBITS":
            return b""
        return self.contents(headers[number]["sh_offset"], headers[number]["sh_size"])

    @cached_property
    def _segments(self) -> list[ElfSegment]:
        headers = self._headers("program", self["e_phoff"], self._segment_count(), self["e_phentsize"], _SEGMENT)
        for header in headers:
            _name(header, "p_type", SEGMENT_TYPES)
        whole = [header for header in headers if header["p_type"] != "PT_LOAD"]  # of these, parts are read
        self._check_overlap("segments", [(header["p_offset"], header["p_filesz"]) for header in whole])
        return [ElfSegment(header, self) for header in headers]

    def _segment_count(self) -> int:
        count: int = self["e_phnum"]
        if count < _PN_XNUM or not self._sections:
            return count
        return int(self._sections[0]["sh_info"])

    def _headers(self, what: str, offset: int, count: int, size: int, record: tuple[str, ...]) -> list[dict[str, Any]]:
        if not count:
            return []
        layout, *names = record
        header = struct.Struct(STRUCT_MARKS[self.byteorder] + layout)
        if size != header.size:
            raise FileError(f"{what} headers of {size} bytes, expected {header.size}")
        end = offset + count * size
        if end > self.size:
            raise FileError(f"truncated after {self.size:,} bytes, its {what} headers end at {end:,}")
        self.stream.seek(offset)
        return [dict(zip(names, values)) for values in header.iter_unpack(self.stream.read(count * size))]

    def _check_overlap(self, what: str, parts: list[tuple[int, int]]) -> None:
        contained = sum(min(size, max(self.size - offset, 0)) for offset, size in parts)
        if contained > _OVERLAP * self.size:
            raise FileError(f"{len(parts):,} {what} of {contained:,} bytes in all, in a file of {self.size:,}")


def _name(header: dict[str, Any], field: str, names: dict[int, str]) -> None:
    header[field] = names.get(header[field], header[field])


def _text(names: bytes, offset: int) -> str:
    return names[offset : offset + _MAX_NAME].partition(b"\0")[0].decode("utf-8", "backslashreplace")
