"""Writes a converted file in pieces, and chooses its permissions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sframe_unwind.elf import ElfBinary, PathLike
from sframe_unwind.errors import FileError
from sframe_unwind.named_tuple import NamedTuple

PLAIN_MODE = 0o644
"""Permissions of a file that is not a copy of a program."""
_PIECE = 1 << 16
"""Number of bytes that are copied at once.  A piece of zeros becomes a hole, so this is also how finely the holes of
a sparse file are kept."""
_HOLE = bytes(_PIECE)


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


def copy_start(file: ElfBinary, size: int, path: Path, shift: int) -> None:
    """Write the first bytes of a file to another one, which is replaced.

    :param size: number of bytes to copy.
    :param shift: number of zero bytes before them.
    :raises FileError: the file became shorter since it was opened.
    """
    with path.open("wb") as stream:
        for offset in range(0, size, _PIECE):
            wanted = min(_PIECE, size - offset)
            piece = file.read(offset, wanted)
            if len(piece) < wanted:
                raise FileError("became shorter while it was copied")
            if piece != _HOLE:
                stream.seek(shift + offset)
                stream.write(piece)
        stream.truncate(shift + size)


def written(chunks: Iterable[Chunk], offset: int, size: int, before: bytes) -> bytes | None:
    """Return bytes of a file as they are after pieces were written into it; ``None``: the file does not have them all.

    :param before: the bytes before that; fewer if the file ended there.
    """
    found = bytearray(before) if len(before) == size else None
    for chunk in chunks:
        first, last = max(offset, chunk.offset), min(offset + size, chunk.offset + len(chunk.data))
        if last - first == size:
            found = bytearray(chunk.data[first - chunk.offset : last - chunk.offset])
        elif found is not None and first < last:
            found[first - offset : last - offset] = chunk.data[first - chunk.offset : last - chunk.offset]
    return None if found is None else bytes(found)


def write_chunks(path: Path, chunks: Iterable[Chunk]) -> None:
    """Write pieces into a file.  Bytes that no piece covers stay, or become a hole."""
    with path.open("r+b") as stream:
        for offset, data in chunks:
            stream.seek(offset)
            stream.write(data)
