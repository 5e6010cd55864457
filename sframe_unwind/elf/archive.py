"""Lists the members of ``ar`` archives in GNU, BSD and thin format.  A thin archive refers to separate files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from sframe_unwind.elf.constants import ARCHIVE_MAGIC, THIN_ARCHIVE_MAGIC
from sframe_unwind.elf.reader import open_file
from sframe_unwind.errors import FileError
from sframe_unwind.named_tuple import NamedTuple

HEADER_SIZE = 60
_NAME, SIZE_FIELD, _END = slice(0, 16), slice(48, 58), slice(58, 60)
_HEADER_END = b"`\n"
LONG_NAMES = b"//"
GNU_SYMBOL_TABLES = {b"/": 4, b"/SYM64/": 8}
"""Names of the symbol tables of GNU ar, and the size of a number in them, in bytes."""
BSD_SYMBOL_TABLES = (b"__.SYMDEF", b"__.SYMDEF SORTED", b"__.SYMDEF_64")
_SYMBOL_TABLES = (*GNU_SYMBOL_TABLES, *BSD_SYMBOL_TABLES)
_BSD_LONG_NAME = b"#1/"


class Member(NamedTuple):
    """One file in an archive."""

    name: str
    file: Path
    """The file with the contents: the archive, or the file that a thin archive refers to."""
    offset: int
    """Offset of the contents in :attr:`file`, in bytes."""
    size: int | None
    """Size in bytes; ``None``: up to the end of the file (a thin archive's size field may be out of date)."""


def is_archive(start: bytes) -> bool:
    """Return whether a file is an archive.

    :param start: at least the first 8 bytes of the file.
    """
    return start.startswith((ARCHIVE_MAGIC, THIN_ARCHIVE_MAGIC))


def members(path: Path) -> Iterator[Member]:
    """Yield the members of an archive in order.

    :raises FileError: the archive cannot be read, is truncated or malformed.
    """
    try:
        with open_file(path) as stream:
            yield from members_of(stream, path)
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from error


def members_of(stream: BinaryIO, path: Path) -> Iterator[Member]:
    """Yield the members of an open archive, in order; between two of them, the stream may be moved.

    :param path: name of the archive.
    :raises FileError: it is truncated or malformed.
    """
    thin = stream.read(len(ARCHIVE_MAGIC)) == THIN_ARCHIVE_MAGIC
    long_names = b""
    for name, content, size in headers(path, stream, thin):
        length = 0
        if name == LONG_NAMES:
            long_names = stream.read(size)
            continue
        if number := _number(name, _BSD_LONG_NAME):
            length = number
            name = stream.read(length).rstrip(b"\0")
        elif _number(name, b"/") is not None:
            name = _long_name(path, long_names, name)
        if name in _SYMBOL_TABLES:
            continue
        text = name.rstrip(b"/").decode("utf-8", "surrogateescape")
        if thin:
            yield Member(text, path.parent / text, 0, None)
        else:
            yield Member(text, path, content + length, max(size - length, 0))


def headers(path: Path, stream: BinaryIO, thin: bool) -> Iterator[tuple[bytes, int, int]]:
    """Yield the name of each member, and offset and size of its contents in bytes.

    The position of the stream is the start of the contents.  A thin archive itself contains only the tables of symbols
    and long names.
    """
    available = stream.seek(0, os.SEEK_END)
    offset = len(ARCHIVE_MAGIC)
    while offset < available:
        stream.seek(offset)
        header = stream.read(HEADER_SIZE)
        if header[_END] != _HEADER_END or not header[SIZE_FIELD].strip().isdigit():
            raise FileError(f"{path}: malformed archive: expected the header of a member at {offset:#x}")
        name, content, size = header[_NAME].rstrip(b" "), offset + HEADER_SIZE, int(header[SIZE_FIELD])
        end = content if thin and name not in (LONG_NAMES, *_SYMBOL_TABLES) else content + size
        if end > available:
            raise FileError(f"{path}: truncated archive: a member ends at {end:#x}, the file at {available:#x}")
        yield name, content, size
        offset = end + end % 2


def _number(name: bytes, prefix: bytes) -> int | None:
    """Return the number that follows the prefix in a name; ``None``: the name has another form.

    GNU ar writes ``/OFFSET`` over the name of a thin archive's member.  If that name has 15 characters, the slash at
    its end stays in the last column of the field.
    """
    digits = name[len(prefix) :].partition(b":")[0].rstrip(b" /")
    return int(digits) if name.startswith(prefix) and digits.isdigit() else None


def _long_name(path: Path, names: bytes, reference: bytes) -> bytes:
    """Return the name that a header gives as ``/OFFSET``, an offset in the table of long names."""
    if b":" in reference:
        raise FileError(f"{path}: a thin archive that refers to the members of another archive: name that one instead")
    start = _number(reference, b"/") or 0
    end = names.find(b"\n", start)
    if end < 0:
        raise FileError(f"{path}: malformed archive: no long name at {start}")
    return names[start:end]
