"""Build IDs, which show that a file on disk is the one that a process has loaded, or its separate debug file."""

from __future__ import annotations

import struct

from sframe_unwind.address import ByteOrder
from sframe_unwind.memory import STRUCT_MARKS

_NT_GNU_BUILD_ID = 3
_HEADER = 12


def find_build_id(notes: bytes, byteorder: ByteOrder) -> str:
    """Return the build ID of an ELF file in hexadecimal digits, or an empty string.

    :param notes: the contents of one ``PT_NOTE`` segment; trailing bytes are allowed.
    :param byteorder: ``"little"`` or ``"big"``.
    """
    layout = struct.Struct(STRUCT_MARKS[byteorder] + "III")
    offset = 0
    while offset + _HEADER <= len(notes):
        name_size, size, kind = layout.unpack_from(notes, offset)
        start = offset + _HEADER + (name_size + 3 & ~3)
        if kind == _NT_GNU_BUILD_ID and notes[offset + _HEADER : start] == b"GNU\0":
            return notes[start : start + size].hex()
        offset = start + (size + 3 & ~3)
    return ""
