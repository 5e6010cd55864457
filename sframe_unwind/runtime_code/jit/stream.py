"""A file object over a range of process memory.  It keeps what was read, to detect changes."""

from __future__ import annotations

import io

from sframe_unwind.errors import MemoryReadError
from sframe_unwind.memory import ReadMemory

_CHUNK = 4096


class MemoryStream(io.RawIOBase):
    """A file in memory.

    :param read: reads the memory.
    :param address: address of the first byte.
    :param size: length in bytes.
    """

    def __init__(self, read: ReadMemory, address: int, size: int) -> None:
        super().__init__()
        self._read = read
        self._address = address
        self._size = size
        self._position = 0
        self._chunks: dict[int, bytes] = {}

    def unchanged(self) -> bool:
        """Return whether the memory that was read has not changed."""
        try:
            return all(self._fetch(number) == chunk for number, chunk in self._chunks.items())
        except MemoryReadError:
            return False

    def readable(self) -> bool:
        """Return ``True``."""
        return True

    def seekable(self) -> bool:
        """Return ``True``."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the position, in bytes, and return it."""
        self._position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        return self._position

    def tell(self) -> int:
        """Return the position in bytes."""
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """Return up to ``size`` bytes from the position on.

        :raises MemoryReadError: the memory cannot be read.
        """
        left = max(self._size - self._position, 0)
        size = left if size is None or size < 0 else min(size, left)
        if not size:
            return b""
        first, offset = divmod(self._position, _CHUNK)
        last = (self._position + size - 1) // _CHUNK
        for number in range(first, last + 1):
            if number not in self._chunks:
                self._chunks[number] = self._fetch(number)
        joined = b"".join(self._chunks[number] for number in range(first, last + 1))
        self._position += size
        return joined[offset : offset + size]

    def _fetch(self, number: int) -> bytes:
        start = number * _CHUNK
        return self._read(self._address + start, min(_CHUNK, self._size - start))
