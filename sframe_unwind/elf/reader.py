"""Reads parts of a file on demand."""

from __future__ import annotations

import os
import weakref

from sframe_unwind.errors import FileError


class FileReader:
    """Reads parts of a file.  The file is closed when this object is garbage-collected.

    :param path: path of the file.
    :raises FileError: the file cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise FileError(f"{path}: {error.strerror or error}") from error
        weakref.finalize(self, os.close, self._descriptor)

    def read(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes at ``offset``; fewer after the end of the file or on a read error."""
        try:
            return os.pread(self._descriptor, size, offset)
        except (OSError, OverflowError):  # OverflowError: the offset is larger than any file's
            return b""
