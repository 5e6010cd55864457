"""The records of 64-bit ELF files and of loaded images: one type each, with one decoder and one encoder.

The fields are named as in the ELF gABI, without the prefixes.  Where a name differs, the ELF name is below the field.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from sframe_unwind.address import ByteOrder
from sframe_unwind.elf.constants import (
    ENTRY,
    ET_REL,
    FILE_HEADER,
    PROGRAM_HEADER,
    SECTION_HEADER,
    SHF_ALLOC,
    SHF_COMPRESSED,
    SHF_EXECINSTR,
    SHT_NOBITS,
    SYMBOL,
)
from sframe_unwind.errors import FileError
from sframe_unwind.memory import STRUCT_MARKS
from sframe_unwind.named_tuple import NamedTuple

MAGIC = b"\x7fELF"
"""The first bytes of each ELF file."""
CLASS_64 = 2
"""``ELFCLASS64``, byte 4 of a file."""
BYTE_ORDERS: dict[int, ByteOrder] = {1: "little", 2: "big"}
"""``ELFDATA2LSB`` and ``ELFDATA2MSB``, byte 5 of a file."""
MAGIC_64 = MAGIC + bytes([CLASS_64])
"""The first bytes of each 64-bit ELF file."""
HEADER_SIZE = 64
"""Size of ``Elf64_Ehdr`` in bytes."""


class FileHeader(NamedTuple):
    """``Elf64_Ehdr``.  Offsets and sizes are in bytes."""

    ident: bytes
    type: int
    machine: int
    version: int
    entry: int
    phoff: int
    shoff: int
    flags: int
    ehsize: int
    phentsize: int
    phnum: int
    shentsize: int
    shnum: int
    shstrndx: int

    @property
    def byteorder(self) -> ByteOrder:
        """The byte order of the file."""
        return BYTE_ORDERS[self.ident[5]]

    @property
    def is_object(self) -> bool:
        """Whether the file is not linked: its sections have no addresses."""
        return self.type == ET_REL


class ProgramHeader(NamedTuple):
    """``Elf64_Phdr``: a segment.  Sizes and offsets are in bytes."""

    type: int
    flags: int
    offset: int
    """Offset of the contents in the file."""
    address: int
    """``p_vaddr``; in an image in memory with the load bias."""
    physical: int
    """``p_paddr``"""
    file_size: int
    """``p_filesz``"""
    memory_size: int
    """``p_memsz``"""
    alignment: int
    """``p_align``"""

    @property
    def end(self) -> int:
        """End address (exclusive)."""
        return self.address + self.memory_size


class SectionHeader(NamedTuple):
    """``Elf64_Shdr``, with number and name of the section in its file.  Sizes and offsets are in bytes."""

    name_offset: int = 0
    """``sh_name``: offset of the name in the section with the names."""
    type: int = 0
    flags: int = 0
    address: int = 0
    """``sh_addr``: without the load bias."""
    offset: int = 0
    """Offset of the contents in the file."""
    size: int = 0
    link: int = 0
    """Number of another section: of relocations, the symbol table; of a symbol table, the names."""
    info: int = 0
    """Of relocations, the number of the section that they apply to."""
    alignment: int = 0
    """``sh_addralign``"""
    entry_size: int = 0
    """``sh_entsize``"""
    number: int = 0
    """Not part of the record: the index of the section."""
    name: str = ""
    """Not part of the record."""

    @property
    def has_contents(self) -> bool:
        """Whether the file has contents for it; a separate debug file keeps only the headers of loaded sections."""
        return self.type != SHT_NOBITS

    @property
    def is_loaded(self) -> bool:
        """Whether the section is part of the image in memory."""
        return bool(self.flags & SHF_ALLOC)

    @property
    def is_code(self) -> bool:
        """Whether the section has instructions."""
        return bool(self.flags & SHF_EXECINSTR)

    @property
    def is_compressed(self) -> bool:
        """Whether the contents begin with a compression header."""
        return bool(self.flags & SHF_COMPRESSED)

    @property
    def end(self) -> int:
        """End address (exclusive)."""
        return self.address + self.size


class CompressionHeader(NamedTuple):
    """``Elf64_Chdr``, at the start of a compressed section."""

    type: int
    size: int
    """Size of the decompressed contents, in bytes."""
    alignment: int


class Symbol(NamedTuple):
    """``Elf64_Sym``."""

    name: int = 0
    info: int = 0
    other: int = 0
    shndx: int = 0
    value: int = 0
    size: int = 0


class RelocationEntry(NamedTuple):
    """``Elf64_Rela``."""

    offset: int
    info: int
    addend: int


class DynamicEntry(NamedTuple):
    """``Elf64_Dyn``."""

    tag: int
    value: int


_LAYOUTS: dict[type, str] = {
    FileHeader: FILE_HEADER,
    ProgramHeader: PROGRAM_HEADER,
    SectionHeader: SECTION_HEADER,
    CompressionHeader: "I4xQQ",
    Symbol: SYMBOL,
    RelocationEntry: ENTRY,
    DynamicEntry: "qQ",
}
_FIELDS: dict[type, int] = {SectionHeader: 10}
"""Number of fields that the record on disk has, for the types that have further fields."""

Record = TypeVar(
    "Record", FileHeader, ProgramHeader, SectionHeader, CompressionHeader, Symbol, RelocationEntry, DynamicEntry
)


def layout(kind: type[Any], byteorder: ByteOrder) -> struct.Struct:
    """Return the layout of a kind of record."""
    return struct.Struct(STRUCT_MARKS[byteorder] + _LAYOUTS[kind])


def decoded(kind: type[Record], data: bytes, byteorder: ByteOrder) -> Iterator[Record]:
    """Yield the records of a kind in the order of the data; a part of one at the end is left out."""
    record = layout(kind, byteorder)
    for fields in record.iter_unpack(data[: len(data) // record.size * record.size]):
        yield kind(*fields)


def encoded(records: Sequence[Record], byteorder: ByteOrder) -> bytes:
    """Return the bytes of records.

    :raises FileError: a value does not fit its field: addresses of a damaged file end beyond 64 bits.
    """
    try:
        return b"".join(layout(type(one), byteorder).pack(*one[: _FIELDS.get(type(one))]) for one in records)
    except struct.error:
        raise FileError("segments or sections at addresses that leave no room for another segment") from None


def identification(byteorder: ByteOrder) -> bytes:
    """Return ``e_ident`` of a 64-bit file."""
    order = next(number for number, name in BYTE_ORDERS.items() if name == byteorder)
    return (MAGIC + bytes([CLASS_64, order, 1])).ljust(16, b"\0")


def new_header(kind: int, machine: int, byteorder: ByteOrder) -> FileHeader:
    """Return the header of a file without any contents.

    :param kind: ``e_type``.
    :param machine: ``e_machine``.
    """
    return FileHeader(
        ident=identification(byteorder),
        type=kind,
        machine=machine,
        version=1,
        entry=0,
        phoff=0,
        shoff=0,
        flags=0,
        ehsize=HEADER_SIZE,
        phentsize=0,
        phnum=0,
        shentsize=0,
        shnum=0,
        shstrndx=0,
    )


def file_header(data: bytes) -> FileHeader:
    """Return the header of a 64-bit ELF file.

    :param data: the first bytes of the file; more than the header may be given.
    :raises FileError: it is not a 64-bit ELF file, or ends within its header.
    """
    what = "not a readable ELF file"
    if data[:4] != MAGIC:
        raise FileError(f"{what}: it begins with {data[:4]!r}, expected {MAGIC!r}")
    file_class, order = data[4:5], BYTE_ORDERS.get(data[5] if len(data) > 5 else 0)
    if file_class == b"\1":
        raise FileError("a 32-bit ELF file; SFrame exists for 64-bit ABIs only")
    if file_class != bytes([CLASS_64]):
        raise FileError(f"{what}: Invalid EI_CLASS {file_class!r}")
    if order is None:
        raise FileError(f"{what}: Invalid EI_DATA {data[5:6]!r}")
    found = next(decoded(FileHeader, data[:HEADER_SIZE], order), None)
    if found is None:
        raise FileError(f"{what}: its header ends after {len(data)} of {HEADER_SIZE} bytes")
    return found
