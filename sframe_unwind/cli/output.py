"""Files that a command writes because an option names them."""

from __future__ import annotations

import errno
import os
import stat
import sys
from typing import TYPE_CHECKING

from sframe_unwind.elf.constants import ARCHIVE_MAGIC, THIN_ARCHIVE_MAGIC
from sframe_unwind.elf.reader import file_type, open_file
from sframe_unwind.elf.records import MAGIC
from sframe_unwind.errors import FileError
from sframe_unwind.replacing import replacing, writing

if TYPE_CHECKING:
    from pathlib import Path


def check_writable(option: str, path: str) -> None:
    """Check that a file can be written, before the work starts whose result it gets.

    A program is not overwritten: in ``verify --html a.so b.so``, ``a.so`` is the page.

    :param option: the option that names it, such as ``--html``.
    :raises FileError: it cannot be written, or is a program, a library or an archive.
    """
    from pathlib import Path  # it takes 4 ms to import, and most runs write no file

    target = Path(path)
    try:
        found = file_type(target)
        there = found is not None or file_type(target.parent) == stat.S_IFDIR
    except ValueError as error:  # a zero byte in the name
        raise FileError(f"{option}: expected the name of a file, found {path!r}: {error}") from error
    except OSError as error:  # a directory on the way may not be searched
        raise FileError(f"{path}: cannot be written: {error.strerror or error}") from error
    if path == "-" or found == stat.S_IFDIR:
        raise FileError(f"{option}: expected the name of a file, found {path!r}")
    if not os.access(target if found is not None else target.parent, os.W_OK):
        raise FileError(f"{path}: cannot be written: {os.strerror(_why(target) if there else errno.ENOENT)}")
    if found == stat.S_IFREG and _is_program(path):
        raise FileError(f"{option}: {path} is an ELF file or an archive, which is not overwritten")


def _is_program(path: str) -> bool:
    """Return whether a file is an ELF file or an archive, as far as it can be read."""
    try:
        with open_file(path) as stream:
            return stream.read(len(ARCHIVE_MAGIC)).startswith((MAGIC, ARCHIVE_MAGIC, THIN_ARCHIVE_MAGIC))
    except (OSError, FileError):  # it can be written, but not read
        return False


def _why(target: Path) -> int:
    """Return the error number of writing to a file without permission, in a folder that exists."""
    is_read_only = os.statvfs(target.parent).f_flag & os.ST_RDONLY
    return errno.EROFS if is_read_only else errno.EACCES


def descriptor() -> int | None:
    """Return the file descriptor of standard output; ``None``: it has none."""
    try:
        return sys.stdout.fileno()
    except (OSError, ValueError):
        return None


def terminal_columns(wide: bool) -> int | None:
    """Return the width of the terminal on standard output; ``None``: lines may have any width.

    :param wide: the user wants lines of any width.
    """
    if wide or not sys.stdout.isatty():
        return None
    from shutil import get_terminal_size  # it takes 2 ms

    return get_terminal_size().columns


def write(path: str, text: str) -> None:
    """Write a file.  If that fails, an existing file with this name stays unchanged.

    A device or a FIFO is written in place, and so is a file with several names (hard links), or in a folder that is not
    writable.

    :raises FileError: it cannot be written.
    """
    from pathlib import Path

    target = Path(path)
    with writing(path):
        if target.exists() and not (
            target.is_file() and target.stat().st_nlink == 1 and os.access(target.resolve().parent, os.W_OK)
        ):
            _write(target, text)
        else:
            with replacing(path) as temporary:
                _write(temporary, text)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", errors="backslashreplace")
