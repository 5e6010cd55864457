"""Reads the headers and the contents of ELF files, within limits."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import BinaryIO, Callable

from sframe_unwind.elf.constants import ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD
from sframe_unwind.elf.headers import Headers
from sframe_unwind.elf.machines import machine_name, type_name
from sframe_unwind.elf.records import CompressionHeader, SectionHeader, decoded, layout
from sframe_unwind.elf.relocation_names import RelocationNames
from sframe_unwind.errors import DecompressionError, FileError, counted
from sframe_unwind.memory import STRUCT_MARKS

_MAX_GROWTH, _ALWAYS = 100, 1 << 20
"""Maximum ratio of the size of a section to its compressed size, and the size in bytes that is always allowed.  The
ratio of real ``.debug_frame`` sections is 3 to 10; zlib can reach 1,000."""
_OLD_PREFIX, _OLD_MAGIC = ".zdebug_", b"ZLIB"
"""Start of the name of a section that GNU tools compressed before 2014, and of its contents; its size follows."""
_COMPRESSIONS = {ELFCOMPRESS_ZLIB: "zlib", ELFCOMPRESS_ZSTD: "zstd"}


class Reader(Headers):
    """The headers of a 64-bit ELF file and the contents of its sections.

    :param stream: the file, which stays open as long as this object is used.
    :raises FileError: it is not a 64-bit ELF file; a compressed one is not.
    """

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__(stream)
        self.machine = machine_name(self.header.machine)
        """``e_machine`` as the ELF gABI names it: ``EM_X86_64``; a number that has no name here, in digits."""
        self.type_name = type_name(self.header.type)
        """``e_type`` as the ELF gABI names it: ``ET_REL``."""
        self.is_object = self.header.is_object
        """It is not linked: its sections have no addresses."""
        self.entry_point = self.header.entry
        """Address of the entry point; 0: there is none."""
        self._mark = STRUCT_MARKS[self.byteorder]

    @cached_property
    def descriptor(self) -> int | None:
        """The descriptor of the file; ``None``: the stream is a part of one, or in memory."""
        with suppress(OSError):
            return self._stream.fileno()
        return None

    def whole(self) -> bytes:
        """Return the bytes of the file."""
        return self.read(0, self.size)

    def contents(self, section: SectionHeader) -> bytes:
        """Return the contents of a section, decompressed; empty for a section without contents in the file.

        If the file ends before the section does, the contents end there.

        :raises DecompressionError: it is compressed, and is not whole, is damaged, or has an implausibly large size;
            or nothing here decompresses it.
        """
        data = self.read(section.offset, section.size) if section.has_contents else b""
        packed = self._packed(section, data)
        if packed is None:
            return data
        from sframe_unwind.decompression import section_contents  # most files have no compressed section

        with _of_section(section):
            return section_contents(*packed)

    def read_decompressed(self, section: SectionHeader) -> Callable[[int, int], bytes]:
        """Return a function that reads a compressed section, and decompresses it as far as it is read.

        It takes an offset and a size in bytes, and returns fewer bytes at the end of the section.

        :raises DecompressionError: see :meth:`contents`; the function also raises it.
        """
        data = self.read(section.offset, section.size)
        packed = self._packed(section, data)
        if packed is None:
            return lambda offset, size: data[offset : offset + size]
        from sframe_unwind.decompression import SectionStart

        with _of_section(section):
            start = SectionStart(*packed)

        def read(offset: int, size: int) -> bytes:
            with _of_section(section):
                return start.read(offset, size)

        return read

    def _packed(self, section: SectionHeader, data: bytes) -> tuple[str, bytes, int] | None:
        """Return the format, the data and the decompressed size of a section; ``None``: it is not compressed.

        :raises DecompressionError: see :meth:`contents`.
        """
        if section.has_contents and section.is_compressed:
            kind, start, size = self._compression(section, data)
        elif section.name.startswith(_OLD_PREFIX) and data.startswith(_OLD_MAGIC):
            kind, start, size = "zlib", 12, int.from_bytes(data[4:12], "big")
        else:
            return None
        if size > max(_MAX_GROWTH * section.size, _ALWAYS):
            claim = f"{counted(size, 'byte', spec=',')} compressed to {section.size:,}"
            raise DecompressionError(f"{section.name} claims to be {claim}, more than {_MAX_GROWTH} to 1")
        return kind, data[start:], size

    def _compression(self, section: SectionHeader, data: bytes) -> tuple[str, int, int]:
        """Return the format, the offset of the compressed data and their decompressed size by a compression header.

        :raises DecompressionError: see :meth:`contents`.
        """
        if len(data) < section.size:
            end = section.offset + section.size
            raise DecompressionError(f"{section.name} is compressed, and ends at {end:#x}, after the file")
        start = layout(CompressionHeader, self.byteorder).size
        header = next(decoded(CompressionHeader, data[:start], self.byteorder), None)
        if header is None:
            raise DecompressionError(f"{section.name} is compressed, and has no compression header")
        kind = _COMPRESSIONS.get(header.type)
        if kind is None:
            raise DecompressionError(f"{section.name} cannot be decompressed: compression {header.type} is not known")
        return kind, start, header.size

    @cached_property
    def _relocation_names(self) -> RelocationNames:
        return RelocationNames(self._stream)

    def relocation_name(self, kind: int) -> str:
        """Return the name of a relocation type of the file's machine, such as ``R_X86_64_PLT32``."""
        return self._relocation_names.name(kind)

    def section(self, number: int) -> SectionHeader:
        """Return a section by its number.

        :raises FileError: there is none with this number; see also :attr:`sections`.
        """
        if number >= len(self.sections):
            raise FileError(f"no section {number}, of {len(self.sections)}")
        return self.sections[number]

    def strings(self, symbols: SectionHeader) -> bytes:
        """Return the string table of a symbol table.

        :raises FileError: the file does not have it.
        """
        return self.contents(self.section(symbols.link))

    def records(self, fields: str, data: bytes) -> Iterator[tuple[int, ...]]:
        """Yield the records of a table as plain tuples, which takes half the time of records with names.

        :param fields: :mod:`struct` format of a record, without byte order.
        """
        record = struct.Struct(self._mark + fields)
        return record.iter_unpack(data[: len(data) // record.size * record.size])


@contextmanager
def _of_section(section: SectionHeader) -> Iterator[None]:
    """Add the name of a section to an error."""
    try:
        yield
    except DecompressionError as error:
        raise DecompressionError(f"{section.name} cannot be decompressed: {error}") from error
