"""The sections of a 64-bit ELF file on disk: headers, contents, compression, relocation.

A debugger's Python has no pyelftools.  Only the ranges of the file that are asked for are read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import BinaryIO, NamedTuple

from sframe_unwind.arch import Arch
from sframe_unwind.decompression.streams import SECTION_ZLIB, DecompressionError, section_contents
from sframe_unwind.elf.build_id import find_build_id
from sframe_unwind.errors import FileError, FormatError, MissingExtraError
from sframe_unwind.memory import STRUCT_MARKS

_HEADER_SIZE = 64
_SECTION_SIZE = 64
_SYMBOL_SIZE = 24
_SHT_RELA, _SHT_NOTE, _SHT_NOBITS = 4, 7, 8
_SHF_ALLOC, _SHF_EXECINSTR, _SHF_COMPRESSED = 0x2, 0x4, 0x800
_SHN_LORESERVE, _SHN_XINDEX = 0xFF00, 0xFFFF
_ET_REL = 1
_MAX_RATIO = 1100
"""Deflate compresses to a 1,032nd part at best.  A header that claims more is damaged."""
_MAX_SECTION = 1 << 30


class FileSection(NamedTuple):
    """One section header."""

    name: str
    kind: int
    """``sh_type``"""
    flags: int
    """``sh_flags``"""
    address: int
    """``sh_addr``: without the load bias."""
    offset: int
    """``sh_offset``, in bytes."""
    size: int
    """``sh_size``, in bytes."""
    link: int
    """``sh_link``: of relocations, the index of the symbol table."""
    info: int
    """``sh_info``: of relocations, the index of the section that they apply to."""

    @property
    def is_allocated(self) -> bool:
        """Whether the section is part of the image in memory."""
        return bool(self.flags & _SHF_ALLOC)

    @property
    def is_code(self) -> bool:
        """Whether the section has executable code."""
        return bool(self.flags & _SHF_EXECINSTR)

    @property
    def has_contents(self) -> bool:
        """Whether the file has the contents of the section."""
        return self.kind != _SHT_NOBITS


class ElfSections:
    """The section headers of a file.

    :param file: the open file; it is read while this object is in use.
    :param arch: the architecture that the file has to be for.
    :raises FormatError: this is not such a file, or its section headers are malformed.
    :raises FileError: the file cannot be read.
    """

    def __init__(self, file: BinaryIO, arch: Arch) -> None:
        self._file = file
        self._arch = arch
        self._mark = STRUCT_MARKS[arch.byteorder]
        header = self._read(0, _HEADER_SIZE, "ELF header")
        if header[:6] != b"\x7fELF\x02" + (b"\1" if arch.byteorder == "little" else b"\2"):
            raise FormatError(f"expected a 64-bit ELF file of {arch.name}, found {header[:6].hex()}")
        self.is_relocatable = self._unpack("H", header, 16)[0] == _ET_REL
        """The file is an object file: its sections have no addresses yet, and are relocated when they get them."""
        (table,) = self._unpack("Q", header, 40)
        size, count, names = self._unpack("HHH", header, 58)
        if size != _SECTION_SIZE or not table:
            raise FormatError(f"expected section headers of {_SECTION_SIZE} bytes, found {size} bytes at {table:#x}")
        layout = struct.Struct(self._mark + "IIQQQQII16x")  # name to info; alignment and entry size are not needed
        first = layout.unpack(self._read(table, size, "first section header"))
        # ELF gABI, chapter 4: numbers that do not fit the ELF header are in the section header with index 0.
        count, names = count or first[5], first[6] if names == _SHN_XINDEX else names
        raw = self._read(table, count * size, "section headers")
        headers = self._headers = list(layout.iter_unpack(raw))
        if names >= len(headers):
            raise FormatError(f"expected a section with names, found index {names} of {len(headers)}")
        self._names = self._read(headers[names][4], headers[names][5], "section names")

    @cached_property
    def all(self) -> tuple[FileSection, ...]:
        """All section headers, by index."""
        return tuple(map(self._section, range(len(self._headers))))

    def _section(self, index: int) -> FileSection:
        name, *others = self._headers[index]
        return FileSection(self._names[name : self._names.find(b"\0", name)].decode("utf-8", "replace"), *others)

    def beginning(self, *names: str) -> Iterator[tuple[int, FileSection]]:
        """Yield index and header of each section whose name begins with one of some strings.

        The other sections, which are most, are not decoded.
        """
        wanted = tuple(map(str.encode, names))
        for index, header in enumerate(self._headers):
            if self._names.startswith(wanted, header[0]):
                yield index, self._section(index)

    def find(self, *names: str) -> int | None:
        """Return the index of the first section with contents and one of the names; ``None``: there is none."""
        matching = (at for at, one in enumerate(self.all) if one.name in names and one.has_contents)
        return next(matching, None)

    def build_id(self) -> str:
        """Return the build ID in hexadecimal digits; empty: the file has none."""
        notes = (self.contents(at) for at, (_, kind, *_) in enumerate(self._headers) if kind == _SHT_NOTE)
        return next(filter(None, (find_build_id(data, self._arch.byteorder) for data in notes)), "")

    def contents(self, index: int) -> bytes:
        """Return the contents of a section, uncompressed.

        :raises FormatError: the section is malformed, or it is compressed in a way that this Python does not know.
        :raises FileError: the file cannot be read.
        """
        section = self._section(index)
        data = self._read(section.offset, section.size, section.name)
        if section.flags & _SHF_COMPRESSED:
            kind, size = struct.unpack_from(self._mark + "I4xQ", self._enough(data, 24, section), 0)
            return _uncompressed(kind, data[24:], size, section.name)
        if section.name.startswith(".zdebug") and data[:4] == b"ZLIB":
            size = int.from_bytes(self._enough(data, 12, section)[4:12], "big")
            return _uncompressed(SECTION_ZLIB, data[12:], size, section.name)
        return data

    def relocated(self, index: int, addresses: Mapping[str, int]) -> bytes:
        """Return the contents of a section of an object file, relocated for the addresses of the other sections.

        :param addresses: address of each section that is loaded, by name.
        :raises FormatError: section or relocations are malformed, or of an unknown type.
        :raises FileError: the file cannot be read.
        """
        data = bytearray(self.contents(index))
        bases = [addresses.get(section.name, 0) for section in self.all]
        for at, section in enumerate(self.all):
            if section.kind == _SHT_RELA and section.info == index:
                symbols = self.contents(section.link) if section.link < len(self.all) else b""
                self._relocate(data, self.contents(at), symbols, bases)
        return bytes(data)

    def _relocate(self, data: bytearray, relocations: bytes, symbols: bytes, bases: list[int]) -> None:
        entry, symbol = struct.Struct(self._mark + "QQq"), struct.Struct(self._mark + "IBBHQQ")
        usable = len(relocations) // entry.size * entry.size
        for place, info, addend in entry.iter_unpack(relocations[:usable]):
            field = self._arch.relocations.get(info & 0xFFFFFFFF)
            number = info >> 32
            if not info & 0xFFFFFFFF:
                continue  # R_*_NONE
            if field is None or field.pc_relative or (number + 1) * _SYMBOL_SIZE > len(symbols):
                raise FormatError(f"relocation at {place:#x}: type {info & 0xFFFFFFFF} of symbol {number} is not known")
            _, _, _, home, value, _ = symbol.unpack_from(symbols, number * _SYMBOL_SIZE)
            base = bases[home] if 0 < home < min(len(bases), _SHN_LORESERVE) else 0
            if place + field.size > len(data):
                raise FormatError(f"relocation at {place:#x}: the section has {len(data)} bytes")
            word = base + value + addend & (1 << 8 * field.size) - 1
            data[place : place + field.size] = word.to_bytes(field.size, self._arch.byteorder)

    def _unpack(self, layout: str, data: bytes, offset: int) -> tuple[int, ...]:
        return struct.unpack_from(self._mark + layout, data, offset)

    def _read(self, offset: int, size: int, what: str) -> bytes:
        if size > _MAX_SECTION:
            raise FormatError(f"{what}: expected at most {_MAX_SECTION} bytes, found {size}")
        try:
            self._file.seek(offset)
            data = self._file.read(size)
        except (OSError, ValueError, OverflowError) as error:
            raise FileError(f"{what}: {error}") from error
        if len(data) != size:
            raise FormatError(f"{what}: expected {size} bytes at {offset:#x}, found {len(data)}")
        return data

    @staticmethod
    def _enough(data: bytes, size: int, section: FileSection) -> bytes:
        if len(data) < size:
            raise FormatError(f"{section.name}: expected a header of {size} bytes, found {len(data)}")
        return data


def _uncompressed(kind: int, data: bytes, size: int, name: str) -> bytes:
    if not size <= min(len(data) * _MAX_RATIO, _MAX_SECTION):
        raise FormatError(f"{name}: {len(data)} compressed bytes cannot hold {size}")
    try:
        return section_contents(kind, data, size)
    except (DecompressionError, MissingExtraError) as error:
        raise FormatError(f"{name}: {error}") from error
