"""The pieces that a converted file is written from, and its permissions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from sframe_unwind.elf.file import PathLike

PLAIN_MODE = 0o644
"""Permissions of a file that is no copy of a program."""


class Chunk(NamedTuple):
    """Bytes at an offset of a file."""

    offset: int
    data: bytes


def mode_of(path: PathLike) -> int:
    """Return the permissions of a file."""
    return Path(path).stat().st_mode & 0o777


def write_chunks(path: Path, chunks: Iterable[Chunk]) -> None:
    """Write pieces into a file; what none of them covers stays, or is a hole."""
    with path.open("r+b") as stream:
        for offset, data in chunks:
            stream.seek(offset)
            stream.write(data)
