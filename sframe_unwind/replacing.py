"""Writes a file so that its name leads to the old contents or to all of the new ones, never to a part."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sframe_unwind.errors import FileError


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raise :class:`FileError` with the name of the file where the ``with`` block cannot write it."""
    try:
        yield
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {error.strerror or error}") from error


@contextmanager
def replacing(path: str | os.PathLike[str], mode: int | None = None, follow: bool = True) -> Iterator[Path]:
    """Give the path of an empty file beside ``path``, which takes its name when the ``with`` block has succeeded.

    A file that fails to be written, for want of space for example, leaves the file at ``path`` as it was.

    :param mode: permissions; ``None``: those of the file at ``path``, or the default for new files.
    :param follow: a symbolic link stays one, and the file that it leads to is replaced; else anything that has the name
        is replaced, as a cache wants it.
    :raises OSError: the file cannot be written.
    :raises FileError: ``path`` is something other than a regular file.
    """
    target = Path(path).resolve() if follow else Path(path)
    if follow and target.exists() and not target.is_file():
        raise FileError(f"{path}: not a regular file")
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    os.close(descriptor)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(_usual_mode(target) if mode is None else mode)
        temporary.replace(target)
    finally:
        with suppress(OSError):
            temporary.unlink()  # not there any more after success


def _usual_mode(target: Path) -> int:
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        umask = os.umask(0o077)
        os.umask(umask)
        return 0o666 & ~umask
