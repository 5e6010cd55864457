"""Adds SFrame to the object files of static libraries (``ar`` archives)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path

from sframe_unwind import elf
from sframe_unwind.convert.report import Report
from sframe_unwind.convert.to_sframe import Wanted, convert_object
from sframe_unwind.convert.writing import mode_of_copy
from sframe_unwind.elf import PathLike, archive
from sframe_unwind.elf.constants import ARCHIVE_MAGIC, THIN_ARCHIVE_MAGIC
from sframe_unwind.elf.reader import open_file
from sframe_unwind.elf.records import MAGIC_64
from sframe_unwind.errors import FileError
from sframe_unwind.replacing import replacing, writing


def is_archive(path: PathLike) -> bool:
    """Return whether a file is an archive.

    :raises FileError: it cannot be read.
    """
    with open_file(path) as stream:
        return archive.is_archive(stream.read(len(ARCHIVE_MAGIC)))


def convert_archive(path: PathLike, output: PathLike, wanted: Wanted) -> list[Report]:
    """Write a copy of an archive in which SFrame is added to each object file that has DWARF CFI and no SFrame.

    Other members stay unchanged.  The symbol table gets the new offsets of the members.

    :raises FileError: the archive cannot be read or written, is thin, or has no member to convert.
    :raises EncodeError: see :func:`sframe_unwind.convert.to_sframe.convert_object`, which also raises other errors.
    """
    with open_file(path) as stream:
        data = stream.read()
    if data.startswith(THIN_ARCHIVE_MAGIC):
        raise FileError(f"{path}: a thin archive: convert its members")
    members = {member.offset: member.name for member in archive.members_of(BytesIO(data), Path(path))}
    content, places, tables = bytearray(ARCHIVE_MAGIC), {}, []
    reports = []
    for name, start, size in archive.headers(Path(path), BytesIO(data), thin=False):
        if name in archive.BSD_SYMBOL_TABLES:
            raise FileError(f"{path}: an archive with a BSD table of symbols, expected one of GNU ar")
        header, body = bytearray(data[start - archive.HEADER_SIZE : start]), data[start : start + size]
        if start in members and body.startswith(MAGIC_64):
            member = f"{path}({members[start]})"
            with elf.parsed(BytesIO(body), member) as binary:
                if binary.is_object and not binary.has_sframe and binary.cfi.ranges():
                    body, report = convert_object(binary, f"{output}({members[start]})", wanted)
                    reports.append(report)
        places[start - archive.HEADER_SIZE] = len(content)
        header[archive.SIZE_FIELD] = f"{len(body):<10}".encode()
        if name in archive.GNU_SYMBOL_TABLES:
            tables.append((name, len(content) + archive.HEADER_SIZE))
        content += header + body + b"\n" * (len(body) % 2)
    if not reports:
        raise FileError(f"{path}: no object file with DWARF CFI and without SFrame in it")
    for name, start in tables:
        _move(content, start, archive.GNU_SYMBOL_TABLES[name], places)
    with writing(output), replacing(output, mode_of_copy(path, output)) as temporary:
        temporary.write_bytes(content)
    return reports


def _move(content: bytearray, start: int, width: int, places: Mapping[int, int]) -> None:
    """Replace the old offsets of members in a symbol table of the archive by the new ones.

    :param start: offset of the table: a count, then the offset of a member for each symbol, all big-endian.
    :param width: size of a number, in bytes.
    :raises FileError: an entry of the table does not refer to a member.
    """

    def numbers() -> Iterator[int]:
        count = int.from_bytes(content[start : start + width], "big")
        yield from range(start + width, min(start + (count + 1) * width, len(content) - width + 1), width)

    for at in numbers():
        old = int.from_bytes(content[at : at + width], "big")
        if old not in places:
            raise FileError(f"malformed archive: the table of symbols refers to {old:#x}, where no member is")
        content[at : at + width] = places[old].to_bytes(width, "big")
