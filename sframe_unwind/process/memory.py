"""The memory of a process put together from pieces: what a core file has of it, and the files that were mapped."""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import Callable, NamedTuple

from sframe_unwind.errors import MemoryReadError

ReadPiece = Callable[[int, int], bytes]
"""``(offset, size)``: bytes of a piece; fewer, or none, where they are not there."""

_BEYOND = 1 << 64


class _Piece(NamedTuple):
    start: int
    end: int
    read: ReadPiece


class _Layer:
    """Pieces that do not overlap; of those that do, each ends where the next begins."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._pieces: dict[int, _Piece] = {}

    def add(self, start: int, end: int, read: ReadPiece) -> None:
        if start < end and start not in self._pieces:
            insort(self._starts, start)
            self._pieces[start] = _Piece(start, end, read)

    def find(self, address: int) -> tuple[_Piece | None, int]:
        """Return the piece at an address, and where the next one begins."""
        at = bisect_right(self._starts, address)
        following = self._starts[at] if at < len(self._starts) else _BEYOND
        piece = self._pieces[self._starts[at - 1]] if at else None
        return (piece if piece is not None and address < piece.end else None), following


class Memory:
    """Reads what was saved of the memory, and where nothing was, what was mapped there."""

    def __init__(self) -> None:
        self._saved = _Layer()
        self._mapped = _Layer()

    def add_saved(self, start: int, end: int, read: ReadPiece) -> None:
        """Add a piece of memory as it was."""
        self._saved.add(start, end, read)

    def add_mapped(self, start: int, end: int, read: ReadPiece) -> None:
        """Add part of a file that was mapped: what was not saved of it, nobody has written to."""
        self._mapped.add(start, end, read)

    def read_saved(self, address: int, size: int) -> bytes:
        """Read ``size`` bytes at an address, of what was saved alone.

        :raises MemoryReadError: they are not all there.
        """
        piece, _ = self._saved.find(address)
        data = piece.read(address - piece.start, min(size, piece.end - address)) if piece else b""
        if len(data) != size:
            raise MemoryReadError(address, size)
        return data

    def read(self, address: int, size: int) -> bytes:
        """Read ``size`` bytes at an address.

        :raises MemoryReadError: they are not all there.
        """
        data = b""
        while len(data) < size:
            at = address + len(data)
            piece, following = self._saved.find(at)
            if piece is None:
                piece, next_mapped = self._mapped.find(at)
                following = min(following, next_mapped)
            read = piece.read(at - piece.start, min(address + size, piece.end, following) - at) if piece else b""
            if not read:
                raise MemoryReadError(address, size)
            data += read
        return data
