"""A file that is read piece by piece for as long as somebody needs it."""

from __future__ import annotations

import os
import weakref

from sframe_unwind.errors import FileError


class FileReader:
    """Reads a file; it is closed when the last reference to this object goes.

    :param path: the file.
    :raises FileError: it cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise FileError(f"{path}: {error.strerror or error}") from error
        weakref.finalize(self, os.close, self._descriptor)

    def read(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes at an offset, fewer where the file does not have them or they cannot be read."""
        try:
            return os.pread(self._descriptor, size, offset)
        except (OSError, OverflowError):  # OverflowError: the offset is larger than any file's
            return b""
