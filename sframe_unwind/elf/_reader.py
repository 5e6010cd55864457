"""pyelftools' reader of ELF files with limits, with the headers of sections and segments read at once.

pyelftools reads a header each time that it is asked for, follows numbers of headers that the file cannot hold, and
decodes sections of many kinds when they are listed.  Here the headers are checked, decoded once, and a section is
nothing but its header, name and contents.

Each call into pyelftools is inside :func:`translated`.  No other code is: an exception that a caller of this module
raises by mistake must not look like a malformed file.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, BinaryIO

from elftools.elf.elffile import ELFFile
from elftools.elf.enums import ENUM_P_TYPE_BASE, ENUM_SH_TYPE_BASE
from elftools.elf.sections import Section
from elftools.elf.segments import Segment

from sframe_unwind.errors import FileError, SFrameError

_SECTION = (
    "IIQQQQIIQQ",
    *("sh_name", "sh_type", "sh_flags", "sh_addr", "sh_offset"),
    *("sh_size", "sh_link", "sh_info", "sh_addralign", "sh_entsize"),
)
_SEGMENT = ("IIQQQQQQ", "p_type", "p_flags", "p_offset", "p_vaddr", "p_paddr", "p_filesz", "p_memsz", "p_align")
"""``Elf64_Shdr`` and ``Elf64_Phdr``: layout for :mod:`struct`, and pyelftools' names of the fields."""
_SECTION_TYPES, _SEGMENT_TYPES = (
    {number: name for name, number in names.items() if name != "_default_"}
    for names in (ENUM_SH_TYPE_BASE, ENUM_P_TYPE_BASE)
)
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


@contextmanager
def translated(what: str = "not a readable ELF file") -> Iterator[None]:
    """Convert the exceptions of pyelftools to :class:`FileError`.  The block contains calls into pyelftools alone.

    :param what: begins the message.
    """
    try:
        yield
    except (SFrameError, OSError, MemoryError):  # of the stream that pyelftools reads
        raise
    except Exception as error:
        # On malformed files, pyelftools raises exceptions of many types: ELFError, those of construct, KeyError,
        # UnicodeDecodeError and others.
        raise FileError(f"{what}: {str(error) or type(error).__name__}") from error


class CheckedSection(Section):  # type: ignore[misc]  # pyelftools has no types
    """A section."""

    def data(self) -> bytes:
        """Return the contents, decompressed; empty for a section without contents in the file.

        Where the file ends before the section, the contents end there.

        :raises FileError: it is compressed, and cannot be decompressed or has an implausibly large size.
        """
        if self["sh_type"] == "SHT_NOBITS":
            return b""
        size, stored = self.data_size, self["sh_size"]
        if not self.compressed:
            return bytes(self.elffile.contents(self["sh_offset"], stored))
        if size > max(_MAX_GROWTH * stored, _ALWAYS):
            raise FileError(
                f"{self.name} claims to be {size:,} bytes compressed to {stored:,}, more than {_MAX_GROWTH} to 1"
            )
        with translated(f"{self.name} cannot be decompressed"):
            return bytes(super().data())


class CheckedSegment(Segment):  # type: ignore[misc]  # pyelftools has no types
    """A segment.

    :param elf: the file that it is in.
    """

    def __init__(self, header: dict[str, Any], elf: CheckedElf) -> None:
        super().__init__(header, elf.stream)
        self._elf = elf

    def data(self) -> bytes:
        """Return the contents.  Where the file ends before the segment, they end there."""
        return self._elf.contents(self["p_offset"], self["p_filesz"])


class CheckedElf(ELFFile):  # type: ignore[misc]  # pyelftools has no types
    """A 64-bit ELF file.

    :raises FileError: it is compressed or 32-bit, or its headers lie outside the file.
    """

    def __init__(self, stream: BinaryIO) -> None:
        start = stream.read(8)
        stream.seek(0)
        for magic, program in _COMPRESSED.items():
            if start.startswith(magic):
                raise FileError(f"compressed; {program} -d decompresses it")
        with translated():
            super().__init__(stream)
        if self.elfclass != 64:
            raise FileError("a 32-bit ELF file; SFrame exists for 64-bit ABIs only")
        self._size = stream.seek(0, os.SEEK_END)

    def contents(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes of the file at ``offset``; fewer at its end."""
        if offset >= self._size:
            return b""
        self.stream.seek(offset)
        return bytes(self.stream.read(min(size, self._size - offset)))

    def iter_sections(self, type: str | None = None) -> Iterator[Any]:  # noqa: A002  # the name is pyelftools'
        """Yield the sections, those of one type if it is given.

        :raises FileError: the headers lie outside the file, or the sections overlap.
        """
        return (section for section in self._sections if type is None or section["sh_type"] == type)

    def get_section(self, n: int, type: object = None) -> Any:  # noqa: A002  # the name is pyelftools'
        """Return a section by its number.

        :raises FileError: there is none of this number, or as in :meth:`iter_sections`.
        """
        if type is not None or "_size" not in self.__dict__:
            return super().get_section(n, type)  # pyelftools itself asks, inside `translated`
        if n >= len(self._sections):
            raise FileError(f"no section {n}, of {len(self._sections)}")
        return self._sections[n]

    def get_section_by_name(self, name: str) -> Any:
        """Return the last section of a name; ``None``: there is none.

        :raises FileError: as in :meth:`iter_sections`.
        """
        return next((section for section in reversed(self._sections) if section.name == name), None)

    def iter_segments(self, type: str | None = None) -> Iterator[Any]:  # noqa: A002  # the name is pyelftools'
        """Yield the segments, those of one type if it is given.

        :raises FileError: the headers lie outside the file, or the segments overlap.
        """
        return (segment for segment in self._segments if type is None or segment["p_type"] == type)

    @cached_property
    def _sections(self) -> list[CheckedSection]:
        with translated():
            count = self.num_sections()
        headers = self._headers("section", self["e_shoff"], count, self["e_shentsize"], _SECTION)
        for header in headers:
            header["sh_type"] = _SECTION_TYPES.get(header["sh_type"], header["sh_type"])
        kept = [header for header in headers if header["sh_type"] != "SHT_NOBITS"]
        self._check_overlap("sections", [(header["sh_offset"], header["sh_size"]) for header in kept])
        names = self._section_names(headers)
        named = [(header, _name(names, header["sh_name"])) for header in headers]
        with translated():
            return [CheckedSection(header, name, self) for header, name in named]

    def _section_names(self, headers: list[dict[str, Any]]) -> bytes:
        with translated():
            number = self.get_shstrndx()
        if number >= len(headers) or headers[number]["sh_type"] == "SHT_NOBITS":
            return b""
        return self.contents(headers[number]["sh_offset"], headers[number]["sh_size"])

    @cached_property
    def _segments(self) -> list[CheckedSegment]:
        headers = self._headers("program", self["e_phoff"], self._segment_count(), self["e_phentsize"], _SEGMENT)
        for header in headers:
            header["p_type"] = _SEGMENT_TYPES.get(header["p_type"], header["p_type"])
        whole = [header for header in headers if header["p_type"] != "PT_LOAD"]  # of these, parts are read
        self._check_overlap("segments", [(header["p_offset"], header["p_filesz"]) for header in whole])
        with translated():
            return [CheckedSegment(header, self) for header in headers]

    def _segment_count(self) -> int:
        count: int = self["e_phnum"]
        if count < 0xFFFF or not self._sections:
            return count
        return int(self._sections[0]["sh_info"])  # PN_XNUM

    def _headers(self, what: str, offset: int, count: int, size: int, record: tuple[str, ...]) -> list[dict[str, Any]]:
        if not count:
            return []
        layout, *names = record
        header = struct.Struct(("<" if self.little_endian else ">") + layout)
        if size != header.size:
            raise FileError(f"{what} headers of {size} bytes, expected {header.size}")
        end = offset + count * size
        if end > self._size:
            raise FileError(f"truncated after {self._size:,} bytes, its {what} headers end at {end:,}")
        self.stream.seek(offset)
        return [dict(zip(names, values)) for values in header.iter_unpack(self.stream.read(count * size))]

    def _check_overlap(self, what: str, parts: list[tuple[int, int]]) -> None:
        contained = sum(min(size, max(self._size - offset, 0)) for offset, size in parts)
        if contained > _OVERLAP * self._size:
            raise FileError(f"{len(parts):,} {what} of {contained:,} bytes in all, in a file of {self._size:,}")


def _name(names: bytes, offset: int) -> str:
    return names[offset : offset + _MAX_NAME].partition(b"\0")[0].decode("utf-8", "backslashreplace")
