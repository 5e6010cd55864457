"""Decodes the features of a recording that concern stacks: texts about the machine, and the build IDs of files."""

from __future__ import annotations

from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.perf.constants import CPUMODE_MASK, CPUMODE_USER, MISC_BUILD_ID_SIZE
from sframe_unwind.perf.cursor import Cursor

_BUILD_ID_SIZE = 20
_FIELD = 24
"""Size of the field with the build ID in bytes: the build ID, its size in one byte, and padding."""


class FileBuildId(NamedTuple):
    """The build ID of a file that had samples when the recording ended."""

    path: str
    build_id: str
    """Hexadecimal digits."""
    is_user: bool
    """The file is not the kernel or one of its modules."""


def read_text(cursor: Cursor) -> str:
    """Decode a feature of one text, such as HEADER_ARCH, the output of ``uname -m``.

    :raises FormatError: it is too short.
    """
    return cursor.text(cursor.u32())


def read_build_ids(cursor: Cursor) -> list[FileBuildId]:
    """Decode HEADER_BUILD_ID, which is a sequence of PERF_RECORD_HEADER_BUILD_ID.

    :raises FormatError: a record is too short.
    """
    found = []
    while cursor.left:
        cursor.u32()  # type
        misc, size = cursor.u16(), cursor.u16()
        start = cursor.offset
        found.append(read_build_id(Cursor(cursor.take(size - 8), cursor.byteorder, "a build ID", start), misc))
    return found


def read_build_id(cursor: Cursor, misc: int) -> FileBuildId:
    """Decode the body of a PERF_RECORD_HEADER_BUILD_ID.

    :raises FormatError: it is too short.
    """
    cursor.u32()  # pid
    field = cursor.take(_FIELD)
    size = min(field[_BUILD_ID_SIZE], _BUILD_ID_SIZE) if misc & MISC_BUILD_ID_SIZE else _BUILD_ID_SIZE
    return FileBuildId(cursor.text(), field[:size].hex(), misc & CPUMODE_MASK == CPUMODE_USER)
