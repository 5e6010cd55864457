"""Decompresses sections of ELF files, records of perf, and whole files: zlib, Zstandard, gzip, xz and bzip2.

Zstandard has several implementations, none of which is everywhere: Python's module (since 3.14), the package zstandard,
and the library of the system, which a debugger's Python has too.
"""

from __future__ import annotations

import weakref
import zlib
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Callable, NamedTuple, Protocol

from sframe_unwind.errors import MissingExtraError, SFrameError

SECTION_ZLIB, SECTION_ZSTD = 1, 2
"""``ELFCOMPRESS_ZLIB``, ``ELFCOMPRESS_ZSTD``: the field ``ch_type`` of a compressed section (ELF gABI, chapter 4)."""
_PIECE = 1 << 10
"""Number of compressed bytes to decompress at once.  A byte can stand for 40 KB of zeros."""
_ZSTD_LIBRARY = "libzstd.so.1"


class DecompressionError(SFrameError):
    """The data is damaged, or has an unknown compression."""


class _Stream(Protocol):
    """The interface of the decompressors of Python's library and of zstandard."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes: ...


class _Implementation(NamedTuple):
    new: Callable[[], _Stream]
    errors: tuple[type[Exception], ...]


class Decompressor:
    """Decompresses a stream, of one frame or several, which comes in pieces.

    :param find: finds the implementation.
    """

    def __init__(self, find: Callable[[], _Implementation]) -> None:
        self._new, self._errors = find()
        self._current = self._new()

    def decompress(self, data: bytes, enough: int | None = None) -> bytes:
        """Return the decompressed contents of the next piece.

        :param enough: number of bytes after which no other frame is expected; ``None``: the data is frames to its end.
        :raises DecompressionError: it is damaged.
        """
        found = bytearray()
        try:
            while data and (enough is None or len(found) < enough):
                found += self._current.decompress(data)
                data = self._current.unused_data if self._current.eof else b""
                if self._current.eof:
                    self._current = self._new()
        except self._errors as error:
            raise DecompressionError(str(error)) from error
        return bytes(found)


def section_contents(kind: int, data: bytes, size: int) -> bytes:
    """Return the contents of a compressed section; the caller checks that ``size`` is plausible.

    :param kind: ``ch_type``.
    :param data: the bytes after the compression header.
    :param size: number of bytes that the header promises.
    :raises DecompressionError: the data is damaged, has not that size, or its compression is unknown.
    :raises MissingExtraError: see :func:`zstd`.
    """
    find = {SECTION_ZLIB: _zlib, SECTION_ZSTD: zstd}.get(kind)
    if find is None:
        raise DecompressionError(f"compression {kind} is not known")
    found, at, stream = bytearray(), 0, Decompressor(find)
    while at < len(data) and len(found) < size:
        found += stream.decompress(data[at : at + _PIECE], size - len(found))
        at += _PIECE
    if len(found) < size:
        raise DecompressionError(f"expected {size} bytes, found {len(found)} when decompressed")
    return bytes(found[:size])


def of_file(start: bytes) -> Callable[[], _Implementation] | None:
    """Return what finds the implementation for a file, by its first 6 bytes; ``None``: it is not compressed."""
    return next((find for magic, find in _FILES.items() if start.startswith(magic)), None)


def _zlib() -> _Implementation:
    return _Implementation(zlib.decompressobj, (zlib.error,))


def _gzip() -> _Implementation:
    with_header = 16 + zlib.MAX_WBITS
    return _Implementation(lambda: zlib.decompressobj(with_header), (zlib.error,))


def _by_standard_library(module: str, name: str) -> _Implementation:
    """Return a class of a module that Python can be built without."""
    try:
        found = import_module(module)
    except ImportError as error:
        raise DecompressionError(f"this Python has no module {module}") from error
    return _Implementation(getattr(found, name), (getattr(found, "LZMAError", OSError), OSError, ValueError, EOFError))


def zstd() -> _Implementation:
    """Return the implementation of Zstandard.

    :raises MissingExtraError: this Python has neither ``compression.zstd`` (3.14) nor the package ``zstandard``, and
        the system has no ``libzstd.so.1``.
    """
    try:
        standard = import_module("compression.zstd")  # since Python 3.14
    except ImportError:
        pass
    else:
        return _Implementation(standard.ZstdDecompressor, (standard.ZstdError, EOFError))
    try:
        package = import_module("zstandard")
    except ImportError as error:
        of_system = _zstd_of_system()
        if of_system is None:
            raise MissingExtraError("zstandard", "perf") from error
        return of_system
    return _Implementation(lambda: package.ZstdDecompressor().decompressobj(), (package.ZstdError,))


_FILES: Mapping[bytes, Callable[[], _Implementation]] = {
    b"\x1f\x8b": _gzip,
    b"\x28\xb5\x2f\xfd": zstd,
    b"\xfd7zXZ\0": lambda: _by_standard_library("lzma", "LZMADecompressor"),
    b"BZh": lambda: _by_standard_library("bz2", "BZ2Decompressor"),
}
"""By the first bytes of compressed files."""


def _zstd_of_system() -> _Implementation | None:
    try:
        import ctypes  # Python can be built without it

        library = ctypes.CDLL(_ZSTD_LIBRARY)
        library.ZSTD_createDStream.restype = ctypes.c_void_p
        library.ZSTD_freeDStream.argtypes = [ctypes.c_void_p]
        library.ZSTD_decompressStream.argtypes = [ctypes.c_void_p] * 3
        library.ZSTD_decompressStream.restype = library.ZSTD_DStreamOutSize.restype = ctypes.c_size_t
        library.ZSTD_isError.argtypes = library.ZSTD_getErrorName.argtypes = [ctypes.c_size_t]
        library.ZSTD_getErrorName.restype = ctypes.c_char_p
    except (ImportError, OSError, AttributeError):
        return None
    return _Implementation(lambda: _SystemStream(library), (_SystemError,))


class _SystemError(Exception):
    """An error of the library."""


class _SystemStream:
    """One frame, decompressed by the library of the system.

    :param library: the loaded library (``zstd.h``).
    """

    def __init__(self, library: Any) -> None:
        self._library = library
        self._stream = library.ZSTD_createDStream()
        weakref.finalize(self, library.ZSTD_freeDStream, self._stream)
        self.eof = False
        self.unused_data = b""

    def decompress(self, data: bytes, /) -> bytes:
        import ctypes

        class Buffer(ctypes.Structure):
            """``ZSTD_inBuffer`` and ``ZSTD_outBuffer``."""

            _fields_ = (("start", ctypes.c_void_p), ("size", ctypes.c_size_t), ("position", ctypes.c_size_t))

        room = ctypes.create_string_buffer(self._library.ZSTD_DStreamOutSize())
        given = ctypes.create_string_buffer(data, len(data))
        source = Buffer(ctypes.addressof(given), len(data), 0)
        found = []
        while not self.eof:
            target = Buffer(ctypes.addressof(room), len(room), 0)
            left = self._library.ZSTD_decompressStream(self._stream, ctypes.byref(target), ctypes.byref(source))
            if self._library.ZSTD_isError(left):
                raise _SystemError(self._library.ZSTD_getErrorName(left).decode("ascii", "replace"))
            found.append(room.raw[: target.position])
            if not left:
                self.eof, self.unused_data = True, data[source.position :]
            elif source.position == source.size and target.position < target.size:
                break
        return b"".join(found)
