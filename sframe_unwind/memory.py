"""Access to the bytes of a file or of a process: types of the read callbacks, lazy reads, caches, bounds checks.

A section can describe hundreds of thousands of functions, and a lookup needs one of them.  Therefore nothing here reads
a whole section.  A read of process memory can cost one packet to a remote target.  Therefore reads fetch chunks.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Mapping
from typing import Callable, Protocol, overload

from sframe_unwind.address import WORD_SIZE, ByteOrder
from sframe_unwind.errors import FormatError, MemoryReadError, counted

ReadMemory = Callable[[int, int], bytes]
"""``(address, size)``: returns exactly ``size`` bytes at ``address``, or raises :class:`MemoryReadError`."""

ReadWord = Callable[[int], int]
"""``(address)``: returns the 8 bytes at ``address`` as an unsigned integer in the target's byte order, or raises
:class:`MemoryReadError`."""

ReadRegister = Callable[[int], int]
"""``(DWARF register number)``: returns the value in the frame, or raises :class:`StepError` if it is unknown."""

STRUCT_MARKS: Mapping[str, str] = {"little": "<", "big": ">"}
"""Maps a byte order, as :meth:`int.from_bytes` spells it, to the prefix of a :mod:`struct` format."""

_CHUNK_BITS = 10
CHUNK = 1 << _CHUNK_BITS
"""Number of bytes that one read fetches: debug stubs send so many in one packet, and many frames fit in them."""

_MOST_AHEAD = 1 << 16
"""Maximum number of bytes that one read of a stack fetches."""


class Data(Protocol):
    """Bytes to decode.  :class:`bytes` and :class:`LazyBytes` implement it."""

    def __len__(self) -> int: ...

    @overload
    def __getitem__(self, key: int) -> int: ...

    @overload
    def __getitem__(self, key: slice) -> bytes: ...


class LazyBytes:
    """A byte sequence that fetches its contents on first access.

    :param fetch: ``fetch(offset, size)`` returns exactly ``size`` bytes from ``offset``, or raises.
    :param size: total length in bytes.
    :param chunk: number of bytes that one fetch requests.
    """

    __slots__ = ("_chunk", "_chunks", "_fetch", "_size")

    def __init__(self, fetch: Callable[[int, int], bytes], size: int, chunk: int = CHUNK) -> None:
        self._fetch = fetch
        self._size = min(size, sys.maxsize)  # a damaged file can claim more than len() can return
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
            return self._fetch(start, stop - start)  # one large read is faster than many small ones
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
    """Return ``size`` bytes of memory at ``address`` as a byte sequence that is read on first access."""
    return LazyBytes(lambda offset, length: read(address + offset, length), size, chunk)


def take(data: Data, offset: int, size: int, what: str, section: str = ".sframe") -> bytes:
    """Return ``size`` bytes of ``data`` at ``offset``.

    :param what: name of the record that is read, for the error message.
    :param section: name of the section that ``data`` holds, for the error message.
    :raises FormatError: the data ends before ``offset + size``.
    """
    piece = data[offset : offset + size] if offset >= 0 else b""
    if len(piece) != size:
        left = max(len(data) - offset, 0)
        raise FormatError(f"{what} needs {counted(size, 'byte')}, the section has {left} left", offset, section)
    return piece


class ChunkCache:
    """Reads memory in aligned chunks and keeps them.

    Call :meth:`forget` after the process has run: the chunks are not checked for changes.

    :param read: reads the memory.
    :param bits: logarithm to base 2 of the size of a chunk in bytes.
    """

    def __init__(self, read: ReadMemory, bits: int = _CHUNK_BITS) -> None:
        self._read = read
        self._bits = bits
        self._chunks: dict[int, bytes] = {}

    def forget(self) -> None:
        """Drop all chunks."""
        self._chunks.clear()

    def read(self, address: int, size: int) -> bytes:
        """Return ``size`` bytes at ``address``.

        :raises MemoryReadError: not all of the bytes can be read.
        """
        number, offset = address >> self._bits, address & (1 << self._bits) - 1
        chunk = self._chunks.get(number)
        if chunk is None:
            try:
                chunk = self._read(number << self._bits, 1 << self._bits)
            except MemoryReadError:
                chunk = b""  # a part of the chunk may still be readable
            self._chunks[number] = chunk
        if offset + size > len(chunk):
            return self._read(address, size)
        return chunk[offset : offset + size]


class WordReader(ChunkCache):
    """A :data:`ReadWord` that reads memory through a :class:`ChunkCache`.

    :param read: reads the memory.
    :param byteorder: ``"little"`` or ``"big"``.
    """

    def __init__(self, read: ReadMemory, byteorder: ByteOrder) -> None:
        super().__init__(read)
        self._unpack = struct.Struct(STRUCT_MARKS[byteorder] + "Q").unpack_from

    def __call__(self, address: int) -> int:
        """Return the word at ``address``, unsigned.

        :raises MemoryReadError: the word cannot be read.
        """
        # This repeats the common case of `read` without a slice, because a walk reads two words for each frame.
        chunk = self._chunks.get(address >> _CHUNK_BITS)
        offset = address & CHUNK - 1
        if chunk is None or offset + WORD_SIZE > len(chunk):
            chunk, offset = self.read(address, WORD_SIZE), 0
        word: int = self._unpack(chunk, offset)[0]
        return word


class ReadAhead:
    """A :data:`ReadMemory` for a stack that is read from its lower end upwards.

    Each read that continues the last one fetches twice as many bytes, up to 64 KiB.  A debug server takes more time for
    a packet than for the bytes in it.

    :param read: reads the memory; the memory must not change during the life of this object.
    """

    def __init__(self, read: ReadMemory) -> None:
        self._read = read
        self._start = 0
        self._ahead = b""
        self._next = CHUNK

    def __call__(self, address: int, size: int) -> bytes:
        """Return ``size`` bytes at ``address``.

        :raises MemoryReadError: not all of the bytes can be read.
        """
        offset = address - self._start
        if 0 <= offset <= len(self._ahead) - size:
            return self._ahead[offset : offset + size]
        follows = offset == len(self._ahead)
        self._next = min(2 * self._next, _MOST_AHEAD) if follows else CHUNK
        if self._next > size:
            try:
                self._start, self._ahead = address, self._read(address, self._next)
                return self._ahead[:size]
            except MemoryReadError:  # the end of the stack's memory is near
                self._next = CHUNK
        self._start, self._ahead = address, self._read(address, size)
        return self._ahead


def read_c_string(read: ReadMemory, address: int, limit: int) -> str:
    """Return the zero-terminated string at ``address``.

    The result ends early where memory cannot be read; it is empty for address 0.

    :param limit: maximum length in bytes; a longer string is truncated.
    """
    at_once = 64  # no read crosses a multiple of this, and so none crosses into a page that may be unreadable
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
