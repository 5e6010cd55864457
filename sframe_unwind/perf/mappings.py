"""Decodes the records of mappings: PERF_RECORD_MMAP and PERF_RECORD_MMAP2."""

from __future__ import annotations

from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.perf.constants import MISC_MMAP_BUILD_ID, MISC_MMAP_DATA
from sframe_unwind.perf.cursor import Cursor

PROT_EXEC = 4
_MAX_BUILD_ID = 20


class Mapping(NamedTuple):
    """A range of addresses that a process mapped."""

    pid: int
    start: int
    """First address."""
    end: int
    """End address (exclusive)."""
    offset: int
    """Offset of ``start`` in the file, in bytes."""
    path: str
    """Path of the file, or a name such as ``[vdso]`` or ``//anon``."""
    build_id: str
    """Build ID in hexadecimal digits; empty: the record has none."""
    executable: bool


def read_mmap(cursor: Cursor, misc: int) -> Mapping:
    """Decode the body of a PERF_RECORD_MMAP.

    :raises FormatError: it is too short.
    """
    pid, (start, size, offset) = _head(cursor)
    return Mapping(
        pid=pid,
        start=start,
        end=start + size,
        offset=offset,
        path=cursor.text(),
        build_id="",
        executable=not misc & MISC_MMAP_DATA,
    )


def read_mmap2(cursor: Cursor, misc: int) -> Mapping:
    """Decode the body of a PERF_RECORD_MMAP2, which has the protection, and a build ID or the inode.

    :raises FormatError: it is too short.
    """
    pid, (start, size, offset) = _head(cursor)
    place = cursor.take(24)
    build_id = place[4 : 4 + min(place[0], _MAX_BUILD_ID)].hex() if misc & MISC_MMAP_BUILD_ID else ""
    protection = cursor.u32()
    cursor.u32()  # flags
    return Mapping(
        pid=pid,
        start=start,
        end=start + size,
        offset=offset,
        path=cursor.text(),
        build_id=build_id,
        executable=bool(protection & PROT_EXEC),
    )


def _head(cursor: Cursor) -> tuple[int, tuple[int, int, int]]:
    pid, _ = cursor.u32(), cursor.u32()
    return pid, (cursor.u64(), cursor.u64(), cursor.u64())
