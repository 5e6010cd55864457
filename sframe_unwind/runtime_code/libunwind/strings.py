"""Strings in the memory of a process."""

from __future__ import annotations

from sframe_unwind.errors import MemoryReadError
from sframe_unwind.image.elf_image import ReadMemory

MAX_LENGTH = 1024
"""A name that is longer is cut."""
_AT_ONCE = 64


def read_string(read: ReadMemory, address: int) -> str:
    """Return the string that begins at an address, as far as it can be read; empty for address 0."""
    raw = b""
    while address and len(raw) < MAX_LENGTH:
        try:
            piece, end, _ = read(address, _AT_ONCE - address % _AT_ONCE).partition(b"\0")
        except MemoryReadError:
            break
        raw += piece
        if end:
            break
        address += len(piece)
    return raw.decode("utf-8", "backslashreplace")
