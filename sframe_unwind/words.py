"""Words of a process's memory, read through a small cache."""

from __future__ import annotations

import struct

from sframe_unwind.errors import MemoryReadError
from sframe_unwind.image.elf_image import ReadMemory
from sframe_unwind.unwind.step import WORD

_CHUNK_BITS = 10
_CHUNK = 1 << _CHUNK_BITS
"""Frames lie close together: what one read of 1 KiB (one packet of a debug stub) brings serves many of them."""


def in_chunks(read: ReadMemory) -> ReadMemory:
    """Return a function that reads bytes as the given one does, but keeps what it read for as long as it lives.

    For many small reads of things that lie close together.
    """
    chunks: dict[int, bytes] = {}

    def read_small(address: int, size: int) -> bytes:
        number, offset = address >> _CHUNK_BITS, address & _CHUNK - 1
        if offset + size > _CHUNK:
            return read(address, size)
        if number not in chunks:
            try:
                chunks[number] = read(number << _CHUNK_BITS, _CHUNK)
            except MemoryReadError:
                return read(address, size)  # part of the chunk may be readable still
        return chunks[number][offset : offset + size]

    return read_small


class Words:
    """Reads words; what was read must be dropped (:meth:`forget`) whenever the process may have run.

    :param read: reads bytes.
    :param byteorder: ``"little"`` or ``"big"``.
    """

    def __init__(self, read: ReadMemory, byteorder: str) -> None:
        mark = "<" if byteorder == "little" else ">"
        self._read = read
        self._unpack = struct.Struct(mark + "Q").unpack_from
        self._chunks: dict[int, bytes] = {}

    def forget(self) -> None:
        """Drop what was read."""
        self._chunks.clear()

    def __call__(self, address: int) -> int:
        """Read the word at an address.

        :raises MemoryReadError: it cannot be read.
        """
        number = address >> _CHUNK_BITS
        chunk = self._chunks.get(number)
        if chunk is None:
            try:
                chunk = self._read(number << _CHUNK_BITS, _CHUNK)
            except MemoryReadError:
                chunk = b""  # part of it may be readable still
            self._chunks[number] = chunk
        offset = address & _CHUNK - 1
        if offset + WORD > len(chunk):
            chunk, offset = self._read(address, WORD), 0
        word: int = self._unpack(chunk, offset)[0]
        return word
