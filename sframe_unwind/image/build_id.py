"""Build IDs: by them a file on disk is known to be the one in memory, or the debug file that belongs to it."""

from __future__ import annotations

import struct

from sframe_unwind.memory import STRUCT_MARKS

_NT_GNU_BUILD_ID = 3
_HEADER = 12


def find_build_id(notes: bytes, byteorder: str) -> str:
    """Return the build ID among the notes of an ELF file, in hex digits; empty where there is none.

    :param notes: the contents of one ``PT_NOTE`` segment; more may follow.
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
