"""Bytes that lie in a file or in another process: fetched in pieces, kept, bounds-checked once.

A section of hundreds of thousands of functions is opened to find one rule, and a read of a process can be a packet to
a remote target.  So whoever needs a few bytes must not cause all to be read, and what lies close together is read at
once.
"""

from __future__ import annotations

import struct
from typing import Callable, Protocol, overload

from sframe_unwind.address import WORD_SIZE
from sframe_unwind.errors import FormatError, MemoryReadError

ReadMemory = Callable[[int, int], bytes]
"""``(address, size)``: returns exactly ``size`` bytes; raises :class:`MemoryReadError`."""

ReadWord = Callable[[int], int]
"""``(address)``: returns the 8 bytes there as an unsigned integer in the target's byte order; raises
:class:`MemoryReadError`."""

ReadRegister = Callable[[int], int]
"""``(DWARF register number)``: returns the value; raises :class:`StepError` where the frame does not know it."""

STRUCT_MARKS = {"little": "<", "big": ">"}
"""Byte order, as :meth:`int.from_bytes` has it, to the mark that :mod:`struct` has for it."""

_CHUNK_BITS = 10
CHUNK = 1 << _CHUNK_BITS
"""Bytes that one read fetches: as much as fits into one packet of the debug stubs.  It serves many frames."""


class Data(Protocol):
    """Bytes to decode: :class:`bytes` and :class:`LazyBytes` are such."""

    def __len__(self) -> int: ...

    @overload
    def __getitem__(self, key: int) -> int: ...

    @overload
    def __getitem__(self, key: slice) -> bytes: ...


class LazyBytes:
    """Bytes that are fetched when they are first looked at.

    :param fetch: ``fetch(offset, size)`` returns exactly ``size`` bytes from ``offset``, or raises.
    :param size: length of the whole in bytes.
    :param chunk: how many bytes one fetch asks for.
    """

    __slots__ = ("_chunk", "_chunks", "_fetch", "_size")

    def __init__(self, fetch: Callable[[int, int], bytes], size: int, chunk: int = CHUNK) -> None:
        self._fetch = fetch
        self._size = size
        self._chunk = chunk
        self._chunks: dict[int, bytes] = {}

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, key: int) -> int: ...

    @overload
    def __getitem__(self, key: slice) -> bytes: ...

    def __getitem__(self, key: int | slice) -> int | bytes:
        if isinstance(key, int):
            if not 0 <= key < self._size:
                raise IndexError(key)
            number, within = divmod(key, self._chunk)
            return self._fetch_chunk(number)[within]
        start, stop, step = key.indices(self._size)
        if step != 1:
            return bytes(self[index] for index in range(start, stop, step))
        if start >= stop:
            return b""
        first, last = start // self._chunk, (stop - 1) // self._chunk
        if first == last:
            base = first * self._chunk
            return self._fetch_chunk(first)[start - base : stop - base]
        if last - first > 1 and first not in self._chunks:
            return self._fetch(start, stop - start)  # one large read beats many small ones
        base = first * self._chunk
        joined = b"".join(self._fetch_chunk(number) for number in range(first, last + 1))
        return joined[start - base : stop - base]

    def _fetch_chunk(self, number: int) -> bytes:
        chunk = self._chunks.get(number)
        if chunk is None:
            offset = number * self._chunk
            chunk = self._chunks[number] = self._fetch(offset, min(self._chunk, self._size - offset))
        return chunk


def lazy_memory(read: ReadMemory, address: int, size: int, chunk: int = CHUNK) -> LazyBytes:
    """Return a range of memory as bytes that are read when they are looked at."""
    return LazyBytes(lambda offset, length: read(address + offset, length), size, chunk)


def take(data: Data, offset: int, size: int, what: str, section: str = ".sframe") -> bytes:
    """Return ``size`` bytes at ``offset``.

    :param what: the record that is read, for the message.
    :param section: the section that the data is, likewise.
    :raises FormatError: the data ends before.
    """
    piece = data[offset : offset + size] if offset >= 0 else b""
    if len(piece) != size:
        left = max(len(data) - offset, 0)
        raise FormatError(f"{what} needs {size} bytes, the section has {left} left", offset, section)
    return piece


class ChunkCache:
    """Reads memory in aligned chunks and keeps them; who may see the process run must :meth:`forget` them then.

    :param read: reads the memory.
    """

    def __init__(self, read: ReadMemory) -> None:
        self._read = read
        self._chunks: dict[int, bytes] = {}

    def forget(self) -> None:
        """Drop what was read."""
        self._chunks.clear()

    def read(self, address: int, size: int) -> bytes:
        """Return ``size`` bytes at an address.

        :raises MemoryReadError: they cannot all be read.
        """
        number, offset = address >> _CHUNK_BITS, address & CHUNK - 1
        chunk = self._chunks.get(number)
        if chunk is None:
            try:
                chunk = self._read(number << _CHUNK_BITS, CHUNK)
            except MemoryReadError:
                chunk = b""  # part of the chunk may be readable still
            self._chunks[number] = chunk
        if offset + size > len(chunk):
            return self._read(address, size)
        return chunk[offset : offset + size]


class WordReader(ChunkCache):
    """A :data:`ReadWord` that keeps what it read, in chunks.

    :param read: reads the memory.
    :param byteorder: ``"little"`` or ``"big"``.
    """

    def __init__(self, read: ReadMemory, byteorder: str) -> None:
        super().__init__(read)
        self._unpack = struct.Struct(STRUCT_MARKS[byteorder] + "Q").unpack_from

    def __call__(self, address: int) -> int:
        """Return the word at an address.

        :raises MemoryReadError: it cannot be read.
        """
        # The common case of `read`, without making a slice: a walk reads two words a frame.
        chunk = self._chunks.get(address >> _CHUNK_BITS)
        offset = address & CHUNK - 1
        if chunk is None or offset + WORD_SIZE > len(chunk):
            chunk, offset = self.read(address, WORD_SIZE), 0
        word: int = self._unpack(chunk, offset)[0]
        return word


def read_c_string(read: ReadMemory, address: int, limit: int) -> str:
    """Return the string that ends with a zero byte at an address, as far as it can be read.

    :param limit: bytes; a longer string is cut.
    """
    at_once = 64  # not beyond what is aligned to it: the next page may not be readable
    raw = b""
    while address and len(raw) < limit:
        try:
            piece, end, _ = read(address, at_once - address % at_once).partition(b"\0")
        except MemoryReadError:
            break
        raw += piece
        if end:
            break
        address += len(piece)
    return raw[:limit].decode("utf-8", "backslashreplace")
