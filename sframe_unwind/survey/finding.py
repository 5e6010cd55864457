"""Looks for ELF files: in directories, packages and archives, and in archives within archives.

Everything else is reported with the reason why it is skipped; files of other kinds are counted.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO, Union

from sframe_unwind.arch import ARCHES
from sframe_unwind.elf import archive, machine_number
from sframe_unwind.elf.constants import THIN_ARCHIVE_MAGIC
from sframe_unwind.elf.reader import is_directory, is_link, open_file, part_of
from sframe_unwind.elf.records import BYTE_ORDERS, MAGIC
from sframe_unwind.errors import MissingExtraError, SFrameError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.survey import archives
from sframe_unwind.survey.archives import Kind, Member
from sframe_unwind.survey.bounds import Bounds, Budget, TooMuchError

NOT_ELF = "not an ELF file"
_CLASS, _ORDER, _MACHINE = 4, 5, slice(18, 20)
_DEBIAN = b"debian-binary"
_DATA = "data.tar"
_PIECE = 1 << 20
_KNOWN = {(machine_number(arch.elf_machine), arch.byteorder) for arch in ARCHES}
CHANGED = "changed while it was read"


class FoundFile(NamedTuple):
    """An ELF file."""

    path: str
    """The path shown to the user, with the archives that contain the file."""
    digest: str
    """SHA-256 of its contents."""
    data: bytes


class Same(NamedTuple):
    """Another name for an ELF file, a hard link within an archive."""

    path: str
    digest: str
    size: int


class Skipped(NamedTuple):
    """Files that are skipped."""

    path: str
    reason: str
    files: int = 1
    """Number of files below the path."""


class Passed(NamedTuple):
    """A file on disk is done, with everything in it."""

    size: int
    """Size in bytes."""


Item = Union[FoundFile, Same, Skipped, Passed]


def _read_at(stream: BinaryIO, offset: int, size: int) -> bytes:
    stream.seek(offset)
    return stream.read(size)


class Finder:
    """Yields the ELF files that names stand for; only one file at a time is in memory.

    :param bounds: limits for each file.
    """

    def __init__(self, bounds: Bounds = Bounds()) -> None:  # noqa: B008  # it cannot change
        self._bounds = bounds
        self._budget = Budget(bounds, 0)
        self._others = 0
        """Number of files of other kinds since the last report of them."""

    def find(self, root: str) -> Iterator[Item]:
        """Yield the files that a name stands for; in a directory in the order of their names.

        :raises MissingExtraError: an archive was found, and libarchive is not installed.
        """
        folder = False
        try:
            folder = is_directory(root)
        except ValueError:  # a zero byte in the name
            yield Skipped(root, "not the name of a file")
            return
        for path in _below(root) if folder else [root]:
            if isinstance(path, Skipped):
                yield path
            else:
                yield from self._of_disk(path, follow=not folder)
        if self._others:
            yield Skipped(root, NOT_ELF, self._others)
            self._others = 0

    def _of_disk(self, path: str, follow: bool) -> Iterator[Item]:
        """Yield the ELF files in a file that is not in an archive.

        :param follow: examine the target of a symbolic link.
        """
        size = 0
        try:
            mode = (Path(path).stat() if follow else Path(path).lstat()).st_mode
            if special := archives.SPECIAL.get(stat.S_IFMT(mode)):
                yield Skipped(path, special)
                return
            with open_file(path) as stream:
                before = os.fstat(stream.fileno())
                size = before.st_size
                self._budget = Budget(self._bounds, size)
                yield from self._file(stream, path, 0)
                after = os.fstat(stream.fileno())
                if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
                    yield Skipped(path, CHANGED)
        except OSError as error:
            yield Skipped(path, error.strerror or str(error))
        except MissingExtraError:
            raise
        except SFrameError as error:
            yield Skipped(path, str(error).removeprefix(f"{path}: "))
        yield Passed(size)

    def _file(self, stream: BinaryIO, path: str, depth: int) -> Iterator[Item]:
        """Yield the ELF files in a file.

        :param stream: the file, at its start; it is seekable.
        :param depth: number of archives that contain the file.
        """
        start = stream.read(archives.START)
        stream.seek(0)
        if start.startswith(MAGIC):
            yield self._elf(iter(lambda: stream.read(_PIECE), b""), start, path)
        elif not _is_archive(start):
            self._others += 1
        elif depth == self._bounds.depth:
            yield Skipped(path, f"nested in {depth} archives; what is further in is not looked at")
        elif archive.is_archive(start):
            yield from self._ar(stream, path, depth + 1)
        else:
            yield from self._archive(archives.members(stream, self._budget), path, depth + 1)

    def _elf(self, pieces: Iterable[bytes], start: bytes, path: str) -> FoundFile | Skipped:
        """Return a file as an ELF file.

        :param pieces: its contents.
        :param start: the first bytes of the contents.
        """
        if len(start) < _MACHINE.stop:
            return Skipped(path, "truncated within the ELF header")
        if start[_CLASS] != 2:
            return Skipped(path, "a 32-bit ELF file")
        order = BYTE_ORDERS.get(start[_ORDER])
        machine = int.from_bytes(start[_MACHINE], order or "little")
        if (machine, order) not in _KNOWN:
            return Skipped(path, f"an ELF file for machine {machine}, {order or 'unknown'}-endian, without SFrame ABI")
        data = bytearray()
        for piece in pieces:
            data += piece
            if len(data) > self._bounds.file:
                return Skipped(path, f"larger than {self._bounds.file:,} bytes")
        return FoundFile(path, hashlib.sha256(data).hexdigest(), bytes(data))

    def _ar(self, stream: BinaryIO, path: str, depth: int) -> Iterator[Item]:
        """Yield the ELF files in an ``ar`` archive: a static library or a Debian package."""
        if stream.read(len(THIN_ARCHIVE_MAGIC)) == THIN_ARCHIVE_MAGIC:
            yield Skipped(path, "a thin archive: its members are files by themselves")
            return
        stream.seek(0)
        package = False
        for number, member in enumerate(archive.members_of(stream, Path(path))):
            self._budget.take_member()
            if not number:
                package = member.name.encode("utf-8", "surrogateescape") == _DEBIAN
            if package and not member.name.startswith(_DATA):
                continue
            part = part_of(partial(_read_at, stream), member.offset, member.size or 0)
            # Users do not know the archive within a Debian package, so it is not part of the name.
            inner = path if package else f"{path}({member.name})"
            yield from self._guarded(part, inner, depth)

    def _archive(self, members: Iterator[Member], path: str, depth: int) -> Iterator[Item]:
        """Yield the ELF files in an archive that libarchive reads."""
        digests: dict[str, tuple[str, int]] = {}
        for member in members:
            name = member.name.lstrip("/").removeprefix("./")
            inner = f"{path}/{name}" if name else path
            if ".." in name.split("/"):
                yield Skipped(inner, "a name that leads out of the archive")
            elif member.kind is Kind.OTHER:
                yield Skipped(inner, member.why)
            elif member.kind is Kind.LINK:
                digest, size = digests.get(member.target.lstrip("/").removeprefix("./"), ("", 0))
                yield (
                    Same(inner, digest, size)
                    if digest
                    else Skipped(inner, "a link to something that is not an ELF file here")
                )
            else:
                for item in self._member(member, inner, depth):
                    if isinstance(item, FoundFile) and item.path == inner:
                        digests[name] = item.digest, len(item.data)
                    yield item

    def _member(self, member: Member, path: str, depth: int) -> Iterator[Item]:
        self._budget.check(member.size or 0)
        start = b""
        pieces = iter(member.contents)
        while len(start) < archives.START and (piece := next(pieces, b"")):
            start += piece
        if start.startswith(MAGIC):
            yield self._elf(_chain(start, pieces), start, path)
        elif _is_archive(start):
            with tempfile.TemporaryFile() as copy:  # it has no name, and is deleted when it is closed
                for piece in _chain(start, pieces):
                    copy.write(piece)
                copy.seek(0)
                yield from self._guarded(copy, path, depth)
        else:
            self._others += 1

    def _guarded(self, stream: BinaryIO, path: str, depth: int) -> Iterator[Item]:
        """Yield the ELF files in a member of an archive; if it is damaged, the search goes on after it."""
        try:
            yield from self._file(stream, path, depth)
        except (TooMuchError, MissingExtraError):
            raise
        except SFrameError as error:
            yield Skipped(path, str(error).removeprefix(f"{path}: "))


def _is_archive(start: bytes) -> bool:
    return archive.is_archive(start) or archives.is_archive(start)


def _chain(start: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    yield start
    yield from pieces


def _below(root: str) -> Iterator[str | Skipped]:
    """Yield the paths of all files below a directory in order; links to directories are not followed."""
    failures: list[OSError] = []
    for base, folders, files in os.walk(root, onerror=failures.append):
        folders.sort()
        linked = (path for path in (Path(base, name) for name in folders) if is_link(path))
        yield from (Skipped(str(path), archives.SPECIAL[stat.S_IFLNK]) for path in linked)
        yield from (str(Path(base, name)) for name in sorted(files))
    for failure in failures:
        yield Skipped(str(failure.filename), failure.strerror or str(failure))


def total_size(roots: Iterable[str]) -> int:
    """Return the size of all files that names stand for, in bytes, as far as it is known without opening them."""
    total = 0
    for root in roots:
        for path in _below(root) if is_directory(root) else [root]:
            try:
                found = Path(path).lstat() if isinstance(path, str) else None
            except (OSError, ValueError):
                continue
            total += found.st_size if found is not None and stat.S_ISREG(found.st_mode) else 0
    return total
