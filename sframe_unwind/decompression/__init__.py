"""Decompresses sections of ELF files, records of perf, and whole files: zlib, gzip, Zstandard, xz and bzip2.

There is one error for all of them, :class:`DecompressionError`: the data is damaged, or nothing here decompresses it.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Generator, Mapping
from functools import partial
from importlib import import_module
from typing import Callable

from sframe_unwind.decompression.streams import Decompressor, FrameDecompressor
from sframe_unwind.errors import DecompressionError

__all__ = [
    "DecompressionError",
    "Decompressor",
    "SectionStart",
    "decompressor",
    "format_of",
    "section_contents",
    "whole",
]

_PIECE, _ZLIB_PIECE = 1 << 10, 1 << 14
"""Number of compressed bytes to decompress at once.  A byte can stand for 40 KB of zeros, but in zlib only for 1 KB."""
_MAX_DICTIONARY = 1 << 27
"""Maximum memory of xz in bytes; at its strongest (``xz -9``), the program's files need 65 MiB."""


def _zlib() -> Decompressor:
    return FrameDecompressor(zlib.decompressobj, (zlib.error,))


def _gzip() -> Decompressor:
    with_header = 16 + zlib.MAX_WBITS
    return FrameDecompressor(lambda: zlib.decompressobj(with_header), (zlib.error,))


def _xz() -> Decompressor:
    return _by_standard_library("lzma", "LZMADecompressor", memlimit=_MAX_DICTIONARY)


def _bzip2() -> Decompressor:
    return _by_standard_library("bz2", "BZ2Decompressor")


def _zstd() -> Decompressor:
    from sframe_unwind.decompression.zstd import zstandard  # few files have it

    return zstandard()


def _by_standard_library(module: str, name: str, **options: int) -> Decompressor:
    """Return a class of a module that Python can be built without."""
    try:
        found = import_module(module)
    except ImportError as error:
        raise DecompressionError(f"this Python has no module {module}") from error
    errors = (getattr(found, "LZMAError", OSError), OSError, ValueError, EOFError)
    return FrameDecompressor(partial(getattr(found, name), **options), errors)


_FORMATS: Mapping[str, Callable[[], Decompressor]] = {
    "zlib": _zlib,
    "gzip": _gzip,
    "zstd": _zstd,
    "xz": _xz,
    "bzip2": _bzip2,
}
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ\0": "xz", b"BZh": "bzip2"}
"""The formats of compressed files, by their first bytes."""


def decompressor(kind: str) -> Decompressor:
    """Return a decompressor for a format: ``zlib``, ``gzip``, ``zstd``, ``xz`` or ``bzip2``.

    :raises DecompressionError: nothing here decompresses it; the message names packages or programs that would.
    """
    return _FORMATS[kind]()


def format_of(start: bytes) -> str | None:
    """Return the format of a compressed file by its first 6 bytes; ``None``: it is none of those here."""
    return next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), None)


def section_contents(kind: str, data: bytes, size: int) -> bytes:
    """Return the contents of a compressed section; the caller checks that ``size`` is plausible.

    :param kind: the format.
    :param data: the bytes after the compression header.
    :param size: number of bytes that the header promises.
    :raises DecompressionError: the data is damaged, or has not that size; see also :func:`decompressor`.
    """
    found = b"".join(_pieces(kind, decompressor(kind), data, size))
    if len(found) < size:
        raise _too_short(size, len(found))
    return found[:size]


class SectionStart:
    """The contents of a compressed section, which are decompressed as far as they are read.

    The parameters and exceptions are those of :func:`section_contents`; reads raise them.
    """

    def __init__(self, kind: str, data: bytes, size: int) -> None:
        self._size = size
        self._found = bytearray()
        self._more = _pieces(kind, decompressor(kind), data, size)
        self._error: DecompressionError | None = None

    def read(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes at an offset; fewer at the end of the section.

        :raises DecompressionError: the data before their end is damaged, or ends before the section does.
        """
        end = min(offset + size, self._size)
        try:
            while len(self._found) < end:
                piece = next(self._more, None)
                if piece is None:
                    self._error = self._error or _too_short(self._size, len(self._found))
                    raise self._error
                self._found += piece
        except DecompressionError as error:
            self._error = error  # the next read does not say less
            raise
        return bytes(self._found[offset:end])


def _too_short(size: int, found: int) -> DecompressionError:
    return DecompressionError(f"expected {size} bytes, found {found} when decompressed")


def whole(kind: str, data: bytes, most: int) -> bytes:
    """Return the decompressed contents of data that ends where its compressed frame does.

    :param kind: the format.
    :param most: maximum size of the contents in bytes.
    :raises DecompressionError: the data is damaged, ends too early, or has larger contents; see also
        :func:`decompressor`.
    """
    stream = decompressor(kind)
    found = b"".join(_pieces(kind, stream, data, most + 1))
    if len(found) > most:
        raise DecompressionError(f"it has more than {most:,} bytes")
    if stream.is_within_frame:
        raise DecompressionError("it ends too early")
    return found


def _pieces(kind: str, stream: Decompressor, data: bytes, enough: int) -> Generator[bytes, None, None]:
    """Yield pieces of the contents, together at least ``enough`` bytes; fewer if there are no more.

    :raises DecompressionError: the data is damaged.
    """
    step = _ZLIB_PIECE if kind in ("zlib", "gzip") else _PIECE
    size = at = 0
    while at < len(data) and size < enough:
        piece = stream.decompress(data[at : at + step], enough - size)
        size += len(piece)
        at += step
        yield piece
    with contextlib.closing(stream.finish()) as rest:
        for piece in rest:
            size += len(piece)
            yield piece
            if size >= enough:
                break
