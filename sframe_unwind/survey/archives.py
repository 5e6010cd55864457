"""Reads the members of archives one after the other from a stream.  Nothing is extracted.

libarchive reads them (package libarchive-c, and the system's libarchive, which bsdtar and package managers use).  It
reads tar, cpio, zip and RPM packages with all of their compressions, and no more of a file than necessary.  Python's
own tarfile keeps extended headers of any size in memory, and rpmfile the whole contents of a package compressed by
zstd.
:mod:`sframe_unwind.elf.archive` reads ``ar`` archives, such as Debian packages.
"""

from __future__ import annotations

import contextlib
import logging
import stat
from collections.abc import Iterable, Iterator
from ctypes import addressof, create_string_buffer, string_at
from enum import Enum
from typing import Any, BinaryIO

from sframe_unwind.errors import FileError, MissingExtraError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.survey.bounds import Budget

START = 512
"""Number of bytes that :func:`format_of` needs of a file."""
_FORMATS = ("tar", "cpio", "zip", "7zip")
"""The formats to read.  libarchive has others; mtree, for example, refers to files of this machine."""
_FILTERS = ("gzip", "bzip2", "xz", "lzma", "zstd", "lz4", "lzip", "compress", "rpm")
"""The compressions to read.  libarchive has others; for some it runs programs."""
_MAGIC = (
    *(b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x5d\0\0", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18", b"LZIP", b"\x1f\x9d"),
    *(b"\xed\xab\xee\xdb", b"PK\3\4", b"7z\xbc\xaf\x27\x1c", b"070701", b"070702", b"070707"),
)
_TAR_MAGIC, _TAR_MAGIC_AT = b"ustar", 257
_SMALL, _LARGE = 1 << 12, 1 << 18
"""Number of bytes to read at once."""
_RAW = b"raw"
SPECIAL = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
}
"""Kinds of members that are neither files with contents nor directories, by the type in their mode."""


class Kind(Enum):
    """The kind of a member."""

    FILE = "file"
    LINK = "hard link"
    OTHER = "other"
    """Not a file; :attr:`Member.why` names its kind."""


class Member(NamedTuple):
    """A member of an archive; its contents can be read until the next member is requested."""

    name: str
    """Empty: the archive is a single compressed file, and does not have its name."""
    kind: Kind
    size: int | None
    """Size in bytes; ``None``: unknown until the member is read."""
    target: str
    """Target of a hard link."""
    why: str
    contents: Iterable[bytes]


def is_archive(start: bytes) -> bool:
    """Return whether a file is one that :func:`members` may read.

    :param start: its first :data:`START` bytes.
    """
    return start.startswith(_MAGIC) or start[_TAR_MAGIC_AT:].startswith(_TAR_MAGIC)


def members(stream: BinaryIO, budget: Budget) -> Iterator[Member]:
    """Yield the members of an archive, without its folders.

    A compressed file that is not an archive is its only member.

    :param stream: the archive, at its start.
    :raises FileError: the archive is damaged.
    :raises TooMuchError: it unpacks to more than it may.
    :raises MissingExtraError: libarchive is not installed.
    """
    ffi = library()
    try:
        with _opened(ffi, stream) as (pointer, entries):
            unpacked = 0
            """Number of bytes of the archive that have been accounted for."""
            for entry in entries:
                budget.take_member()
                now = ffi.filter_bytes(pointer, 0)
                budget.take(max(now - unpacked, 0))
                unpacked = now
                if stat.S_ISDIR(entry.filetype):
                    continue
                member, contents = _member(ffi, pointer, entry, budget)
                yield member
                unpacked += contents.size
                if ffi.format_name(pointer) == _RAW:
                    return  # the search for another member would unpack data that is not needed
    except ffi.ArchiveError as error:
        raise _damaged(error) from error


def _damaged(error: Any) -> FileError:
    """Return the exception of this package for an error of libarchive."""
    return FileError(f"a damaged archive: {error.msg or 'no reason is given'}")


def library() -> Any:
    """Return the functions of libarchive.

    :raises MissingExtraError: it is not installed.
    """
    try:
        from libarchive import ffi  # it loads the system's library, which may not be there
    except (ImportError, OSError, TypeError, AttributeError) as error:
        raise MissingExtraError("libarchive-c", "survey") from error
    logging.getLogger("libarchive").addHandler(logging.NullHandler())  # warnings about names in other encodings
    return ffi


@contextlib.contextmanager
def _opened(ffi: Any, stream: BinaryIO) -> Iterator[tuple[Any, Any]]:
    """Open an archive; give libarchive's pointer and the iterator of its entries."""
    from libarchive.read import ArchiveRead

    buffer = create_string_buffer(_LARGE)
    address = addressof(buffer)  # cast() makes a reference cycle, which keeps the buffer until the garbage is collected

    def read(_pointer: Any, _context: Any, result: Any) -> int:
        result[0] = address
        try:
            return int(stream.readinto(buffer))  # type: ignore[attr-defined]  # all streams here have it
        except OSError:
            return ffi.ARCHIVE_FATAL  # type: ignore[no-any-return]  # no types

    def seek(_pointer: Any, _context: Any, offset: int, whence: int) -> int:
        return stream.seek(offset, whence)

    reading, seeking = ffi.READ_CALLBACK(read), ffi.SEEK_CALLBACK(seek)
    pointer = ffi.read_new()
    try:
        for name in _FILTERS:
            with contextlib.suppress(ValueError, ffi.ArchiveError):  # this build lacks it, or runs a program for it
                ffi.get_read_filter_function(name)(pointer)
        for name in (*_FORMATS, "raw"):
            ffi.get_read_format_function(name)(pointer)
        ffi.read_set_seek_callback(pointer, seeking)
        ffi.read_open(pointer, None, ffi.NO_OPEN_CB, reading, ffi.NO_CLOSE_CB)
        yield pointer, iter(ArchiveRead(pointer))
    finally:
        ffi.read_free(pointer)


class _Contents:
    """The contents of a member, piece by piece.

    Iterating raises :class:`FileError` where the archive is damaged.  The consumer reads the contents while
    :func:`members` is suspended, so the error does not pass through that function.
    """

    def __init__(self, ffi: Any, pointer: Any, size: int | None, budget: Budget) -> None:
        self._ffi = ffi
        self._pointer = pointer
        self._length = min(max(size if size is not None else _LARGE, _SMALL), _LARGE)
        self._budget = budget
        self.size = 0
        """Number of bytes that have been read."""

    def __iter__(self) -> Iterator[bytes]:
        buffer = create_string_buffer(self._length)
        while size := self._read(buffer):
            self._budget.take(size)
            self.size += size
            yield string_at(buffer, size)

    def _read(self, buffer: Any) -> int:
        try:
            return max(int(self._ffi.read_data(self._pointer, buffer, self._length)), 0)
        except self._ffi.ArchiveError as error:
            raise _damaged(error) from error


def _member(ffi: Any, pointer: Any, entry: Any, budget: Budget) -> tuple[Member, _Contents]:
    kind = stat.S_IFMT(entry.filetype)
    is_raw = ffi.format_name(pointer) == _RAW
    name, size = "" if is_raw else _text(entry.pathname), entry.size
    contents = _Contents(ffi, pointer, size, budget)
    if entry.islnk and not size:
        return Member(
            name=name, kind=Kind.LINK, size=0, target=_text(entry.linkpath), why="", contents=contents
        ), contents
    if kind != stat.S_IFREG and not entry.islnk:
        why = SPECIAL.get(kind, f"of the unknown type {kind:#o}")
        return Member(name=name, kind=Kind.OTHER, size=0, target="", why=why, contents=contents), contents
    return Member(name=name, kind=Kind.FILE, size=size, target="", why="", contents=contents), contents


def _text(name: str | bytes | None) -> str:
    return name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else name or ""
