"""Writes a file so that its name leads to the old contents or to all of the new ones, never to a part."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from sframe_unwind.errors import FileError

if TYPE_CHECKING:
    from pathlib import Path


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raise :class:`FileError` with the name of the file where the ``with`` block cannot write it."""
    try:
        yield
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {error.strerror or error}") from error


@contextmanager
def replacing(path: str | os.PathLike[str], mode: int | None = None, follow: bool = True) -> Iterator[Path]:
    """Give the path of an empty file beside ``path``; when the ``with`` block has succeeded, it gets the name ``path``.

    If the block fails, for want of space for example, the file at ``path`` stays unchanged.

    :param mode: permissions; ``None``: the file keeps owner, group, permissions and extended attributes (capabilities
        among them) of the one at ``path``, or has the default permissions of new files.
    :param follow: whether a symbolic link stays one, and the file to which it leads is replaced; otherwise the link
        itself is replaced, as in a cache.
    :raises OSError: the file cannot be written.
    :raises FileError: ``path`` is something other than a regular file.
    """
    from pathlib import Path  # most runs of a command that can write a file write none
    from tempfile import mkstemp

    target = Path(path).resolve() if follow else Path(path)
    if follow and target.exists() and not target.is_file():
        raise FileError(f"{path}: not a regular file")

    descriptor, name = mkstemp(dir=target.parent, prefix=f".{target.name}.")
    os.close(descriptor)
    temporary = Path(name)
    try:
        yield temporary
        if mode is not None:
            temporary.chmod(mode)
        elif target.exists():
            _copy_attributes(target, temporary)
        else:
            temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    finally:
        with suppress(OSError):
            temporary.unlink()  # not there any more after success


def _copy_attributes(source: Path, target: Path) -> None:
    status = source.stat()
    os.chown(target, status.st_uid, status.st_gid)
    target.chmod(stat.S_IMODE(status.st_mode))  # after chown, which clears setuid and setgid
    for name in os.listxattr(source) if hasattr(os, "listxattr") else ():
        os.setxattr(target, name, os.getxattr(source, name))


def _umask() -> int:
    umask = os.umask(0o077)
    os.umask(umask)
    return umask
