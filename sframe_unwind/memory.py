"""Access to bytes that may lie in a file or another process: fetched in pieces, kept, bounds-checked once.

A section of hundreds of thousands of functions is opened to find one rule, so whoever needs a few bytes must
not cause all of them to be read.  Everything that decodes takes a :data:`Data`: ``bytes`` serve, and so does
:class:`LazyBytes`.
"""

from __future__ import annotations

from typing import Callable, Protocol, overload

from sframe_unwind.errors import FormatError


class Data(Protocol):
    """What decoding needs of its bytes; ``bytes`` and :class:`LazyBytes` have it."""

    def __len__(self) -> int: ...

    @overload
    def __getitem__(self, key: int) -> int: ...

    @overload
    def __getitem__(self, key: slice) -> bytes: ...


class LazyBytes:
    """Bytes that are fetched when they are first looked at.

    :param fetch: ``fetch(offset, size)`` returns exactly ``size`` bytes from ``offset``, or raises.
    :param size: length of the whole in bytes.
    :param chunk: how many bytes one fetch asks for; 1024 keep to one packet of the debug stubs.
    """

    __slots__ = ("_chunk", "_chunks", "_fetch", "_size")

    def __init__(self, fetch: Callable[[int, int], bytes], size: int, chunk: int = 1024) -> None:
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
            return self._piece(number)[within]
        start, stop, _ = key.indices(self._size)
        if start >= stop:
            return b""
        first, last = start // self._chunk, (stop - 1) // self._chunk
        if first == last:
            base = first * self._chunk
            return self._piece(first)[start - base : stop - base]
        if last - first > 1 and first not in self._chunks:
            return self._fetch(start, stop - start)  # bulk: one large read beats many small ones
        base = first * self._chunk
        joined = b"".join(self._piece(number) for number in range(first, last + 1))
        return joined[start - base : stop - base]

    def _piece(self, number: int) -> bytes:
        piece = self._chunks.get(number)
        if piece is None:
            offset = number * self._chunk
            piece = self._fetch(offset, min(self._chunk, self._size - offset))
            self._chunks[number] = piece
        return piece


def take(data: Data, offset: int, size: int, what: str) -> bytes:
    """Return ``size`` bytes at ``offset``.

    :param what: the record that is read, for the message.
    :raises FormatError: the data ends before.
    """
    piece = data[offset : offset + size] if offset >= 0 else b""
    if len(piece) != size:
        raise FormatError(f"{what} needs {size} bytes, the section has {max(len(data) - offset, 0)} left", offset)
    return piece
