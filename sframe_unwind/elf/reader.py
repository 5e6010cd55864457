"""Opens regular files, reads parts of them on demand, and distinguishes them from directories.

Files are read, not mapped: a file that another program truncates would end this process with SIGBUS.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Callable
from typing import Any, BinaryIO, Union, cast

from sframe_unwind.errors import FileError

PathLike = Union[str, "os.PathLike[str]"]
"""The name of a file.  Most commands run without :mod:`pathlib`, whose import takes 4 ms."""

_BLOCK = 1 << 12
"""Number of bytes that a read of a few bytes of an open file fetches; Python 3.14 would fetch 128 KB."""

_BUFFER = 1 << 16
"""Number of bytes that one read of a part of a file fetches."""


def open_descriptor(path: PathLike) -> int:
    """Open a regular file for reading.

    Opening a FIFO would wait for a writer, and opening a device can have any effect.

    :raises FileError: it cannot be opened, or is not a regular file.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except ValueError as error:  # a NUL in the name, or a surrogate that stands for no byte
        raise FileError(f"{path}: not the name of a file: {error}") from error
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from error
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    found = f"{os.strerror(errno.EISDIR)}, expected a file" if stat.S_ISDIR(mode) else "not a regular file"
    raise FileError(f"{path}: {found}")


def is_directory(path: PathLike) -> bool:
    """Return whether a path leads to a directory; ``False`` if that is unknown: opening it will report the reason."""
    return os.path.isdir(path)


def file_type(path: PathLike) -> int | None:
    """Return the type of a file, as :func:`stat.S_IFMT` does; ``None``: there is none.  Links are followed.

    From Python 3.14 on, the methods of :class:`pathlib.Path` do not distinguish these errors from a missing file.

    :raises OSError: the type cannot be found out; for example, a directory on the way may not be searched.
    :raises ValueError: the path is not the name of a file.
    """
    try:
        return stat.S_IFMT(os.stat(path).st_mode)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return None
        raise


def is_link(path: PathLike) -> bool:
    """Return whether a path is a symbolic link; ``False`` if that is unknown, see :func:`is_directory`."""
    return os.path.islink(path)


def open_file(path: PathLike) -> BinaryIO:
    """Open a regular file for reading.

    :raises FileError: see :func:`open_descriptor`.
    """
    return os.fdopen(open_descriptor(path), "rb", _BLOCK)


class FileReader:
    """Reads parts of a file.  The file is closed when this object is garbage-collected.

    :param path: path of the file.
    :raises FileError: see :func:`open_descriptor`.
    """

    def __init__(self, path: PathLike) -> None:
        self._descriptor = open_descriptor(path)
        import weakref  # dump reads the whole section at once

        weakref.finalize(self, os.close, self._descriptor)

    def read(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes at ``offset``; fewer after the end of the file or on a read error."""
        try:
            return os.pread(self._descriptor, size, offset)
        except (OSError, OverflowError):  # OverflowError: the offset is larger than any file's
            return b""

    def part(self, offset: int, size: int) -> BinaryIO:
        """Return a part of the file as a stream, which reads no more than is needed."""
        return part_of(self.read, offset, size)


def part_of(read: Callable[[int, int], bytes], offset: int, size: int) -> BinaryIO:
    """Return a part of a file as a stream, which reads no more than is needed.

    :param read: returns up to a number of bytes (the second argument) at an offset in the file (the first).
    """
    return cast(BinaryIO, io.BufferedReader(_Part(read, offset, size), _BUFFER))


class _Part(io.RawIOBase):
    def __init__(self, read: Callable[[int, int], bytes], offset: int, size: int) -> None:
        super().__init__()
        self._read = read
        self._offset = offset
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(base + offset, 0)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        data = self._read(self._offset + self._at, max(min(len(view), self._size - self._at), 0))
        view[: len(data)] = data
        self._at += len(data)
        return len(data)
