"""Writing a file so that it is whole or not there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from sframe_unwind.elf.file import PathLike
from sframe_unwind.errors import FileError

PLAIN_MODE = 0o644
"""Permissions of a file that is no copy of a program."""


class Chunk(NamedTuple):
    """Bytes at an offset of a file."""

    offset: int
    data: bytes


def mode_of(path: PathLike) -> int:
    """Return the permissions of a file."""
    return Path(path).stat().st_mode & 0o777


@contextmanager
def replacing(path: PathLike, mode: int) -> Iterator[Path]:
    """Give the path of an empty file beside ``path``, which takes its name when the ``with`` block has succeeded.

    :param mode: its permissions.
    :raises FileError: it cannot be written, or ``path`` is something other than a regular file.
    """
    target = Path(path).resolve()  # a symbolic link stays one
    temporary = None
    try:
        if target.exists() and not target.is_file():
            raise FileError(f"{path}: not a regular file")
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        os.close(descriptor)
        temporary = Path(name)
        yield temporary
        temporary.chmod(mode)
        temporary.replace(target)
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink()  # not there any more after success


def write_chunks(path: Path, chunks: Iterable[Chunk]) -> None:
    """Write pieces into a file; what none of them covers stays, or is a hole."""
    with path.open("r+b") as stream:
        for offset, data in chunks:
            stream.seek(offset)
            stream.write(data)
