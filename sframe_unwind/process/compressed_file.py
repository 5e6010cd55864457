"""Decompresses a whole file, such as a core file that systemd has stored, into a temporary file."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from sframe_unwind.decompression import DecompressionError, Decompressor, decompressor, format_of
from sframe_unwind.elf.reader import PathLike, open_file
from sframe_unwind.errors import FileError

_START = 6
"""Number of bytes by which compressed files are recognised."""
_PIECE = 1 << 12
_BLOCK = 1 << 12
"""Size of the blocks of zeros for which a sparse file takes no space, in bytes."""
_MAX_SIZE = 1 << 42
"""Maximum size in bytes: a few compressed megabytes can expand to any number of zeros."""


@contextmanager
def plain_file(path: PathLike) -> Iterator[PathLike]:
    """Yield a path with the contents of a file that may be compressed; it is valid within the ``with`` block.

    If the end of the compressed file is missing, so is the end of the contents.

    :raises FileError: the file cannot be read or decompressed.  The name of the file is also in a
        :class:`FileError` that the ``with`` block raises.
    """
    with open_file(path) as stream:
        kind = format_of(stream.read(_START))
        if kind is None:
            yield path
            return
        stream.seek(0)
        from tempfile import TemporaryFile  # few files are compressed

        with TemporaryFile() as target:
            try:
                _decompress(stream, decompressor(kind), target)
            except (DecompressionError, OSError) as error:
                raise DecompressionError(f"{path}: cannot be decompressed: {error}") from error
            plain = f"/dev/fd/{target.fileno()}"
            try:
                yield plain
            except FileError as error:
                raise FileError(str(error).replace(plain, str(path))) from error


def _pieces(stream: BinaryIO, decompressor: Decompressor) -> Iterator[bytes]:
    while piece := stream.read(_PIECE):
        yield decompressor.decompress(piece)
    yield from decompressor.finish()


def _decompress(stream: BinaryIO, decompressor: Decompressor, target: BinaryIO) -> None:
    """Decompress a stream into a file, with holes in place of zeros."""
    size, rest = 0, b""
    for piece in _pieces(stream, decompressor):
        data = rest + piece
        whole = len(data) // _BLOCK * _BLOCK
        for at in range(0, whole, _BLOCK):
            block = data[at : at + _BLOCK]
            if block.count(0) != _BLOCK:
                target.seek(size + at)
                target.write(block)
        size, rest = size + whole, data[whole:]
        if size > _MAX_SIZE:
            raise OSError(errno.EFBIG, f"more than {_MAX_SIZE:,} bytes")
    if not size + len(rest):
        raise DecompressionError("it ends too early")
    target.seek(size)
    target.write(rest)
    target.truncate(size + len(rest))
    target.flush()
