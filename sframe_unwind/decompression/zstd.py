"""Zstandard by the first of four implementations that exists here; none of them is everywhere.

They are Python's module (since 3.14), the package zstandard, the library of the system, which a debugger's Python has
too, and the program ``zstd``.
"""

from __future__ import annotations

import weakref
from importlib import import_module
from typing import Any

from sframe_unwind.decompression.streams import Decompressor, FrameDecompressor
from sframe_unwind.errors import DecompressionError

_LIBRARY, _PROGRAM = "libzstd.so.1", "zstd"
_ALL = f"Python 3.14, the package zstandard (pip install zstandard), {_LIBRARY} or the program {_PROGRAM}"


def zstandard() -> Decompressor:
    """Return a decompressor for Zstandard.

    :raises DecompressionError: no implementation is here.
    """
    for found in (_by_standard_library, _by_package, _by_library, _by_program):
        made = found()
        if made is not None:
            return made
    raise DecompressionError(f"Zstandard needs {_ALL}")


def _by_standard_library() -> Decompressor | None:
    try:
        standard = import_module("compression.zstd")
    except ImportError:
        return None
    return FrameDecompressor(standard.ZstdDecompressor, (standard.ZstdError, EOFError))


def _by_package() -> Decompressor | None:
    try:
        package = import_module("zstandard")
    except ImportError:
        return None
    return FrameDecompressor(lambda: package.ZstdDecompressor().decompressobj(), (package.ZstdError,))


def _by_library() -> Decompressor | None:
    try:
        import ctypes  # Python can be built without it

        library = ctypes.CDLL(_LIBRARY)
        library.ZSTD_createDStream.restype = ctypes.c_void_p
        library.ZSTD_freeDStream.argtypes = [ctypes.c_void_p]
        library.ZSTD_decompressStream.argtypes = [ctypes.c_void_p] * 3
        library.ZSTD_decompressStream.restype = library.ZSTD_DStreamOutSize.restype = ctypes.c_size_t
        library.ZSTD_isError.argtypes = library.ZSTD_getErrorName.argtypes = [ctypes.c_size_t]
        library.ZSTD_getErrorName.restype = ctypes.c_char_p
    except (ImportError, OSError, AttributeError):
        return None
    return FrameDecompressor(lambda: _LibraryStream(library), (_LibraryError,))


def _by_program() -> Decompressor | None:
    import shutil  # rarely needed, and it imports much

    from sframe_unwind.decompression.program import ProgramDecompressor

    path = shutil.which(_PROGRAM)
    if path is None:
        return None
    return ProgramDecompressor([path, "-dcq"], "premature end")


class _LibraryError(Exception):
    """An error of the library."""


class _LibraryStream:
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
                raise _LibraryError(self._library.ZSTD_getErrorName(left).decode("ascii", "replace"))
            found.append(room.raw[: target.position])
            if not left:
                self.eof, self.unused_data = True, data[source.position :]
            elif source.position == source.size and target.position < target.size:
                break
        return b"".join(found)
