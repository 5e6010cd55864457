"""Reads the bytes of a recording in chunks, so that a recording of gigabytes takes little memory."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import BinaryIO

from sframe_unwind.elf.reader import PathLike, open_file
from sframe_unwind.errors import FileError, FormatError, counted
from sframe_unwind.perf.constants import SECTION

STANDARD_INPUT = "-"
"""Stands for standard input in place of a path."""
_CHUNK = 1 << 18
"""Number of bytes to read at once."""
_MOST_CHUNKS = 64
"""Maximum number of chunks to keep.  perf writes the buffers of the processors in turn, so records of
successive times are in several places."""


class Source:
    """The bytes of an open file.

    :param stream: the file; it is read by position.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._chunks: dict[int, bytes] = {}
        self.size = os.fstat(stream.fileno()).st_size
        """Size in bytes, when the file was opened."""

    def read(self, offset: int, size: int, what: str) -> bytes:
        """Return ``size`` bytes at an offset.

        :param what: name of the record, for the error message.
        :raises FormatError: the file ends earlier.
        """
        number, at = divmod(offset, _CHUNK)
        chunk = self._chunks.get(number, b"")
        if at + size <= len(chunk):
            return chunk[at : at + size]
        if not 0 <= offset <= offset + size <= self.size:
            left = max(self.size - offset, 0)
            raise FormatError(f"{what} needs {counted(size, 'byte')}, the file has {left} left", offset, SECTION)
        if at + size > _CHUNK:
            found = self._read_file(offset, size)
        else:
            if len(self._chunks) >= _MOST_CHUNKS:
                del self._chunks[next(iter(self._chunks))]  # the oldest
            chunk = self._chunks[number] = self._read_file(number * _CHUNK, _CHUNK)
            found = chunk[at : at + size]
        if len(found) < size:
            raise FormatError(f"{what} needs {counted(size, 'byte')}, the file became shorter", offset, SECTION)
        return found

    def _read_file(self, offset: int, size: int) -> bytes:
        try:
            return os.pread(self._stream.fileno(), size, offset)
        except OSError as error:
            raise FileError(f"{SECTION}: {error.strerror or error}") from error


def open_sources(path: PathLike) -> tuple[Source, list[Source]]:
    """Open a recording: the file with the header, and files that contain only records.

    ``perf record --threads`` writes a folder: ``data`` has the header, and each thread of perf writes a ``data.N``.
    A recording from standard input goes to a temporary file.

    :param path: the path, or :data:`STANDARD_INPUT`.

    :raises FileError: a file cannot be opened, or is not a regular file.
    """
    if path == STANDARD_INPUT:
        return _from_standard_input(), []
    folder = Path(os.fsdecode(path))
    if not folder.is_dir():
        return Source(open_file(path)), []
    others = [name for name in folder.glob("data.*") if name.suffix[1:].isdecimal()]
    found = [Source(open_file(name)) for name in sorted(others, key=lambda name: int(name.suffix[1:]))]
    return Source(open_file(folder / "data")), found


def _from_standard_input() -> Source:
    spill = Spill()
    try:
        while data := os.read(0, _CHUNK):
            spill.add(data)
    except OSError as error:
        raise FileError(f"cannot read standard input: {error.strerror or error}") from None
    return spill.source()


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
        """Return the source that reads the added bytes."""
        self._stream.flush()
        return Source(self._stream)
