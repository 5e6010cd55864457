"""A range of a process's memory as the file that pyelftools wants, with a record of what was read."""

from __future__ import annotations

import io

from sframe_unwind.errors import MemoryReadError
from sframe_unwind.memory import ReadMemory

_CHUNK = 4096


class MemoryStream(io.RawIOBase):
    """A file in memory, read in pieces.

    :param read: reads the memory.
    :param address: where the file begins.
    :param size: its length in bytes.
    """

    def __init__(self, read: ReadMemory, address: int, size: int) -> None:
        super().__init__()
        self._read = read
        self._address = address
        self._size = size
        self._position = 0
        self._chunks: dict[int, bytes] = {}

    def unchanged(self) -> bool:
        """Return whether what was read until now would be read again."""
        try:
            return all(self._fetch(number) == chunk for number, chunk in self._chunks.items())
        except MemoryReadError:
            return False

    def readable(self) -> bool:
        """Return that it is."""
        return True

    def seekable(self) -> bool:
        """Return that it is."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        self._position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        return self._position

    def tell(self) -> int:
        """Return the place."""
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """Read from the place on.

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
