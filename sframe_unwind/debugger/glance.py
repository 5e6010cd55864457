"""Tells at little cost that a plugin has nothing to do for a file.

A sleeping plugin asks this for each file that a debugger loads.  So this module imports little, and reads the headers,
the names of the sections and those of the symbols as they are in a usual file.
"""

from __future__ import annotations

import os
import struct
from io import FileIO

from sframe_unwind.elf.constants import (
    FILE_HEADER,
    PROGRAM_HEADER,
    PT_GNU_SFRAME,
    SECTION_HEADER,
    SHF_ALLOC,
    SHT_STRTAB,
)

USED_SECTIONS = (b".sframe", b".orc_unwind", b"__ksymtab")
"""Names of sections: SFrame; those of Linux kernels, whose entry code is unwound whatever unwind data they have."""
REGISTERING = b"_U_dyn_register\0"
"""The function of libunwind that registers code at run time."""
LONGEST_TABLE = 1 << 24
"""Maximum size in bytes of a table that is read: a damaged header must not fill the memory."""
_MAGIC = b"\x7fELF\x02"
"""The first bytes of a 64-bit ELF file."""
_MARKS = {b"\1": "<", b"\2": ">"}
"""The prefix of a :mod:`struct` format by the byte order in byte 5 of a file."""


def state_of(path: str) -> tuple[int, ...]:
    """Return a value that changes when a file is replaced, for a cache: debuggers load the same libraries again.

    :raises OSError: there is no such file.
    :raises ValueError: the path has a NUL.
    """
    found = os.stat(path)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def may_be_of_use(path: str, may_register: bool) -> bool:
    """Return ``False`` if nothing in a file concerns the plugin.

    :param may_register: whether a file with the name :data:`REGISTERING` registers code.
    :raises OSError: the file cannot be read.
    """
    with FileIO(path) as stream:
        start = stream.read(struct.calcsize(f"<{FILE_HEADER}"))
        if not start.startswith(_MAGIC):
            return False
        try:
            return _has_word(stream, start, may_register)
        except (_UnusualError, KeyError, struct.error):
            return True


class _UnusualError(Exception):
    """The headers are not as in a usual file."""


def _has_word(stream: FileIO, start: bytes, may_register: bool) -> bool:
    """Return whether there is a segment, or a name in the tables, that concerns the plugin.

    :param start: the file header.
    """
    mark = _MARKS[start[5:6]]
    header = struct.unpack(mark + FILE_HEADER, start)
    phoff, shoff, phentsize, phnum, shentsize, shnum, shstrndx = *header[5:7], *header[9:14]
    segments = _table(stream, mark + PROGRAM_HEADER, phoff, phnum, phentsize)
    if any(segment[0] == PT_GNU_SFRAME for segment in segments):
        return True
    if not shoff:
        return False
    sections = _table(stream, mark + SECTION_HEADER, shoff, shnum, shentsize)
    if shstrndx >= len(sections):
        raise _UnusualError
    names = _contents(stream, sections[shstrndx])
    if any(name in names for name in USED_SECTIONS):
        return True
    tables = [section for section in sections if section[1] == SHT_STRTAB] if may_register else []
    loaded = [section for section in tables if section[2] & SHF_ALLOC and section[5]]
    return any(REGISTERING in _contents(stream, section) for section in loaded or tables)


def _table(stream: FileIO, layout: str, offset: int, count: int, size: int) -> list[tuple[int, ...]]:
    if count and size != struct.calcsize(layout):
        raise _UnusualError
    return list(struct.iter_unpack(layout, _part(stream, offset, count * size)))


def _contents(stream: FileIO, section: tuple[int, ...]) -> bytes:
    return _part(stream, section[4], section[5])


def _part(stream: FileIO, offset: int, size: int) -> bytes:
    if not size:
        return b""
    if size > LONGEST_TABLE or offset + size > os.fstat(stream.fileno()).st_size:
        raise _UnusualError
    stream.seek(offset)
    return stream.read(size)
