"""Writes a converted file piece by piece, and chooses its permissions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from sframe_unwind.elf import PathLike
from sframe_unwind.errors import FileError

PLAIN_MODE = 0o644
"""Permissions of a file that is not a copy of a program."""


class Chunk(NamedTuple):
    """Bytes at an offset of a file."""

    offset: int
    data: bytes


def mode_of_copy(path: PathLike, output: PathLike) -> int | None:
    """Return the permissions of a copy; ``None``: the copy replaces the file itself, and keeps its attributes.

    Another file gets no setuid or setgid bit, like a copy that ``cp`` makes.

    :raises FileError: the file has several names, and the copy would replace only one of them.
    """
    source, target = Path(path), Path(output)
    status = source.stat()
    if not target.exists() or not target.samefile(source):
        return status.st_mode & 0o777
    if status.st_nlink > 1:
        raise FileError(
            f"{output}: the file has {status.st_nlink} names (hard links), and only one would lead to the result:"
            " write it to another file"
        )
    return None


def write_chunks(path: Path, chunks: Iterable[Chunk]) -> None:
    """Write pieces into a file.  Bytes that no piece covers stay, or become a hole."""
    with path.open("r+b") as stream:
        for offset, data in chunks:
            stream.seek(offset)
            stream.write(data)
