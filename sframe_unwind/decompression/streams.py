"""The interface of the decompressors, and the one that uses a module of Python."""

from __future__ import annotations

from collections.abc import Generator
from typing import Callable, Protocol

from sframe_unwind.errors import DecompressionError


class Decompressor(Protocol):
    """Decompresses a stream, of one frame or several, which comes in pieces."""

    @property
    def is_within_frame(self) -> bool:
        """Whether the data so far ends within a frame."""

    def decompress(self, data: bytes, enough: int | None = None) -> bytes:
        """Return decompressed contents when the next piece of the data is there; they may also come later.

        :param enough: number of bytes after which no other frame is expected; ``None``: the data is frames to its end.
        :raises DecompressionError: it is damaged.
        """

    def finish(self) -> Generator[bytes, None, None]:
        """Yield the contents that have not been returned, after the last piece of the data.

        Contents of data that ends within a frame are complete as far as the data goes.

        :raises DecompressionError: the data is damaged.
        """


class Stream(Protocol):
    """The interface of the decompressors of Python's library and of zstandard."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes: ...


class FrameDecompressor:
    """Decompresses frame after frame by a stream of its own.

    :param new: makes a stream for a frame.
    :param errors: the exceptions of the stream for damaged data.
    """

    def __init__(self, new: Callable[[], Stream], errors: tuple[type[Exception], ...]) -> None:
        self._new, self._errors = new, errors
        self._current = self._new()
        self.is_within_frame = True

    def decompress(self, data: bytes, enough: int | None = None) -> bytes:
        """Return the decompressed contents of the next piece, see :meth:`Decompressor.decompress`."""
        pieces: list[bytes] = []
        size = 0
        try:
            while data and (enough is None or size < enough):
                pieces.append(self._current.decompress(data))
                size += len(pieces[-1])
                self.is_within_frame = not self._current.eof
                data = self._current.unused_data if self._current.eof else b""
                if self._current.eof:
                    self._current = self._new()
        except self._errors as error:
            raise DecompressionError(str(error)) from error
        return b"".join(pieces)  # no copy of a single piece

    def finish(self) -> Generator[bytes, None, None]:
        """Yield nothing: all contents have been returned."""
        yield from ()
