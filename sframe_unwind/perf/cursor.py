"""Reads the fields of a record in sequence, with bounds checks."""

from __future__ import annotations

import sys
from array import array

from sframe_unwind.address import WORD_SIZE, ByteOrder
from sframe_unwind.errors import FormatError, counted
from sframe_unwind.perf.constants import SECTION


def words(data: bytes, byteorder: ByteOrder) -> array[int]:
    """Return words of 8 bytes.

    :param data: a whole number of them.
    """
    found = array("Q", data)
    if byteorder != sys.byteorder:
        found.byteswap()
    return found


class Cursor:
    """A position in the bytes of a record.

    :param data: the bytes.
    :param byteorder: ``"little"`` or ``"big"``.
    :param what: name of the record, for error messages.
    :param start: position of the bytes in the file, for error messages.
    """

    def __init__(self, data: bytes, byteorder: ByteOrder, what: str, start: int = 0) -> None:
        self._data = data
        self.byteorder = byteorder
        self._what = what
        self._start = start
        self.at = 0
        """Number of bytes that were read."""

    @property
    def left(self) -> int:
        """Number of bytes that follow."""
        return len(self._data) - self.at

    @property
    def offset(self) -> int:
        """Position in the file."""
        return self._start + self.at

    def take(self, size: int) -> bytes:
        """Return the next ``size`` bytes.

        :raises FormatError: fewer follow.
        """
        start, end = self.at, self.at + size
        if not start <= end <= len(self._data):
            raise FormatError(f"{self._what} needs {counted(size, 'byte')}, {self.left} are left", self.offset, SECTION)
        self.at = end
        return self._data[start:end]

    def unsigned(self, size: int) -> int:
        """Return the next ``size`` bytes as an unsigned integer.

        :raises FormatError: fewer follow.
        """
        return int.from_bytes(self.take(size), self.byteorder)

    def u16(self) -> int:
        """Return the next 2 bytes; see :meth:`unsigned`."""
        return self.unsigned(2)

    def u32(self) -> int:
        """Return the next 4 bytes; see :meth:`unsigned`."""
        return self.unsigned(4)

    def u64(self) -> int:
        """Return the next 8 bytes; see :meth:`unsigned`."""
        return self.unsigned(8)

    def words(self, count: int) -> tuple[int, ...]:
        """Return the next ``count`` words of 8 bytes.

        :raises FormatError: fewer follow.
        """
        return tuple(words(self.take(WORD_SIZE * count), self.byteorder))

    def skip(self, count: int) -> None:
        """Skip ``count`` words of 8 bytes.

        :raises FormatError: fewer follow.
        """
        self.take(WORD_SIZE * count)

    def text(self, size: int | None = None) -> str:
        """Return the zero-terminated text in the next ``size`` bytes, by default in all that follow.

        Bytes that are not UTF-8 become lone surrogates, as in the names of files.
        """
        raw = self.take(self.left if size is None else size)
        return raw.partition(b"\0")[0].decode("utf-8", "surrogateescape")
