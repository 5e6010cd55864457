"""Reads the contents of a section in pieces, because a whole section can take as much memory as the file has bytes."""

from __future__ import annotations

from typing import Callable

_PIECE = 1 << 16
"""Number of bytes that one read fetches."""
_MAX_KEPT = 32
"""Maximum number of pieces to keep."""


class SectionContents:
    """The contents of a section, read from its file when they are needed.

    :param fetch: ``fetch(offset, size)`` returns exactly ``size`` bytes, or raises.
    :param size: size of the section, in bytes.
    """

    def __init__(self, fetch: Callable[[int, int], bytes], size: int) -> None:
        self._fetch = fetch
        self._size = size
        self._pieces: dict[int, bytes] = {}

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, wanted: slice) -> bytes:
        """Return some bytes."""
        start, stop, _ = wanted.indices(self._size)
        number = start // _PIECE
        base = number * _PIECE
        if stop > base + _PIECE:
            return self._fetch(start, stop - start)
        if stop <= start:
            return b""
        piece = self._pieces.get(number)
        if piece is None:
            if len(self._pieces) >= _MAX_KEPT:
                self._pieces.clear()
            piece = self._pieces[number] = self._fetch(base, min(_PIECE, self._size - base))
        return piece[start - base : stop - base]
