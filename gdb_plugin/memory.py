"""The memory of the current inferior in the core's terms."""

from __future__ import annotations

import struct

import gdb

from sframe_unwind.errors import MemoryReadError
from sframe_unwind.step import WORD

_CHUNK_BITS = 10
_CHUNK = 1 << _CHUNK_BITS
"""Frames lie close together: what one read of 1 KiB (one packet of a debug stub) brings serves many of them."""


def read(address: int, size: int) -> bytes:
    """Read ``size`` bytes at an address of the current inferior.

    :raises MemoryReadError: they cannot all be read.
    """
    try:
        return bytes(gdb.selected_inferior().read_memory(address, size))
    except (gdb.error, OverflowError) as error:
        # OverflowError: the address comes from a damaged stack and is none.
        raise MemoryReadError(address, size) from error


class Words:
    """Reads words through a cache that must be dropped (:meth:`forget`) whenever the inferior may have run."""

    def __init__(self, byteorder: str) -> None:
        mark = "<" if byteorder == "little" else ">"
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
                chunk = read(number << _CHUNK_BITS, _CHUNK)
            except MemoryReadError:
                chunk = b""  # part of it may be readable still
            self._chunks[number] = chunk
        offset = address & _CHUNK - 1
        if offset + WORD > len(chunk):
            word: int = self._unpack(read(address, WORD))[0]
        else:
            word = self._unpack(chunk, offset)[0]
        return word
