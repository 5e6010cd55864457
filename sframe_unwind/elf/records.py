"""The records of a 64-bit ELF file that its writers change: file header, program headers, section headers."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from sframe_unwind.address import ByteOrder
from sframe_unwind.elf._reader import Reader
from sframe_unwind.errors import FileError
from sframe_unwind.memory import STRUCT_MARKS


class FileHeader(NamedTuple):
    """``Elf64_Ehdr``."""

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


class ProgramHeader(NamedTuple):
    """``Elf64_Phdr``."""

    type: int
    flags: int
    offset: int
    vaddr: int
    paddr: int
    filesz: int
    memsz: int
    align: int


class SectionHeader(NamedTuple):
    """``Elf64_Shdr``."""

    name: int
    type: int
    flags: int
    addr: int
    offset: int
    size: int
    link: int
    info: int
    addralign: int
    entsize: int


class Symbol(NamedTuple):
    """``Elf64_Sym``."""

    name: int
    info: int
    other: int
    shndx: int
    value: int
    size: int


class DynamicEntry(NamedTuple):
    """``Elf64_Dyn``."""

    tag: int
    value: int


_LAYOUTS: dict[type, str] = {
    FileHeader: "16sHHIQQQIHHHHHH",
    ProgramHeader: "IIQQQQQQ",
    SectionHeader: "IIQQQQIIQQ",
    Symbol: "IBBHQQ",
    DynamicEntry: "qQ",
}

Record = TypeVar("Record", FileHeader, ProgramHeader, SectionHeader, Symbol, DynamicEntry)


def layout(kind: type[Any], byteorder: ByteOrder) -> struct.Struct:
    """Return the layout of a kind of record."""
    return struct.Struct(STRUCT_MARKS[byteorder] + _LAYOUTS[kind])


def read_records(file: Reader, offset: int, count: int, kind: type[Record]) -> list[Record]:
    """Return consecutive records of a file.

    :raises FileError: the file ends before the last record does.
    """
    record = layout(kind, file.byteorder)
    size = count * record.size
    data = file.read(offset, size)
    if len(data) < size:
        raise FileError(f"truncated: {size:#x} bytes of headers at {offset:#x}, the file has {file.size:#x}")
    return [kind(*fields) for fields in record.iter_unpack(data)]


def write_records(records: Sequence[Record], byteorder: ByteOrder) -> bytes:
    """Return the bytes of records.

    :raises FileError: a value does not fit its field: addresses of a damaged file end beyond 64 bits.
    """
    try:
        return b"".join(layout(type(record), byteorder).pack(*record) for record in records)
    except struct.error:
        raise FileError("segments or sections at addresses that leave no room for another segment") from None
