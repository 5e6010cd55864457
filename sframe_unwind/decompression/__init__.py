"""Decompresses sections of ELF files, records of perf, and whole files: zlib, gzip, Zstandard, xz and bzip2.

There is one error for all of them, :class:`DecompressionError`: the data is damaged, or nothing here decompresses it.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import Callable

from sframe_unwind.decompression.streams import Decompressor, FrameDecompressor
from sframe_unwind.decompression.zstd import zstandard
from sframe_unwind.errors import DecompressionError

__all__ = ["DecompressionError", "Decompressor", "decompressor", "format_of", "section_contents", "whole"]

_PIECE = 1 << 10
"""Number of compressed bytes to decompress at once.  A byte can stand for 40 KB of zeros."""
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
    "zstd": zstandard,
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
    found = _decompressed(decompressor(kind), data, size)
    if len(found) < size:
        raise DecompressionError(f"expected {size} bytes, found {len(found)} when decompressed")
    return found[:size]


def whole(kind: str, data: bytes, most: int) -> bytes:
    """Return the decompressed contents of data that ends where its compressed frame does.

    :param kind: the format.
    :param most: maximum size of the contents in bytes.
    :raises DecompressionError: the data is damaged, ends too early, or has larger contents; see also
        :func:`decompressor`.
    """
    stream = decompressor(kind)
    found = _decompressed(stream, data, most + 1)
    if len(found) > most:
        raise DecompressionError(f"it has more than {most:,} bytes")
    if stream.is_within_frame:
        raise DecompressionError("it ends too early")
    return found


def _decompressed(stream: Decompressor, data: bytes, enough: int) -> bytes:
    """Return at least ``enough`` bytes of the contents; fewer if there are no more."""
    pieces: list[bytes] = []
    size = at = 0
    while at < len(data) and size < enough:
        pieces.append(stream.decompress(data[at : at + _PIECE], enough - size))
        size += len(pieces[-1])
        at += _PIECE
    with contextlib.closing(stream.finish()) as rest:
        for piece in rest:
            pieces.append(piece)
            size += len(piece)
            if size >= enough:
                break
    return b"".join(pieces)
