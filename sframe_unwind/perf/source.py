"""Reads the bytes of a recording through a window, so that a recording of gigabytes takes little memory."""

from __future__ import annotations

import os
import tempfile
from typing import BinaryIO

from sframe_unwind.elf.reader import PathLike, open_file
from sframe_unwind.errors import FileError, FormatError
from sframe_unwind.perf.constants import SECTION

_WINDOW = 1 << 20


class Source:
    """The bytes of an open file.

    :param stream: the file; it is read by position.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._start, self._window = 0, b""
        self.size = os.fstat(stream.fileno()).st_size
        """Size in bytes, when the file was opened."""

    def read(self, offset: int, size: int, what: str) -> bytes:
        """Return ``size`` bytes at an offset.

        :param what: name of the record, for the error message.
        :raises FormatError: the file ends before.
        """
        at = offset - self._start
        if at < 0 or at + size > len(self._window):
            if not 0 <= offset <= offset + size <= self.size:
                left = max(self.size - offset, 0)
                raise FormatError(f"{what} needs {size} bytes, the file has {left} left", offset, SECTION)
            try:
                self._window = os.pread(self._stream.fileno(), max(_WINDOW, size), offset)
            except OSError as error:
                raise FileError(f"{SECTION}: {error.strerror or error}") from error
            self._start, at = offset, 0
            if len(self._window) < size:
                raise FormatError(f"{what} needs {size} bytes, the file became shorter", offset, SECTION)
        return self._window[at : at + size]


def open_source(path: PathLike) -> Source:
    """Open a recording.

    :raises FileError: the file cannot be opened, or is no regular file.
    """
    return Source(open_file(path))


class Spill:
    """A temporary file that collects decompressed records."""

    def __init__(self) -> None:
        self._stream = tempfile.TemporaryFile()  # noqa: SIM115  # it lives as long as the source that reads it
        self.size = 0

    def add(self, data: bytes) -> None:
        """Append bytes."""
        self._stream.write(data)
        self.size += len(data)

    def source(self) -> Source:
        """Return what reads the bytes that were added."""
        self._stream.flush()
        return Source(self._stream)
