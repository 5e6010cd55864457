"""Decompresses the records of ``perf record -z`` (Zstandard)."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Callable

from sframe_unwind.errors import FormatError, MissingExtraError
from sframe_unwind.perf.constants import SECTION


class Decompressor:
    """Decompresses one stream of Zstandard frames, which is cut into records at arbitrary places.

    perf flushes its stream at the end of a record and continues with the same frame
    (``zstd_compress_stream_to_records`` of ``tools/perf/util/zstd.c``).

    :raises MissingExtraError: this Python has neither ``compression.zstd`` (3.14) nor the package ``zstandard``.
    """

    def __init__(self) -> None:
        self._new, self._error = _decompressors()
        self._current = self._new()

    def decompress(self, data: bytes, offset: int) -> bytes:
        """Return the decompressed contents of the next piece of the stream.

        :param offset: position of the piece in the file, for the error message.
        :raises FormatError: it is not Zstandard data.
        """
        found = []
        try:
            while data:
                found.append(self._current.decompress(data))
                data = self._current.unused_data if self._current.eof else b""
                if self._current.eof:
                    self._current = self._new()
        except self._error as error:
            raise FormatError(f"compressed records: {error}", offset, SECTION) from error
        return b"".join(found)


def _decompressors() -> tuple[Callable[[], Any], type[Exception]]:
    """Return the function that creates a decompressor, and the error that it raises."""
    try:
        standard = import_module("compression.zstd")  # since Python 3.14
    except ImportError:
        pass
    else:
        return standard.ZstdDecompressor, standard.ZstdError
    try:
        package = import_module("zstandard")
    except ImportError as error:
        raise MissingExtraError("zstandard", "perf") from error
    return lambda: package.ZstdDecompressor().decompressobj(), package.ZstdError
