"""The debug sections of a file; only the needed parts are read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Callable

from sframe_unwind.elf import PathLike, SectionHeader, opened
from sframe_unwind.elf.reader import FileReader
from sframe_unwind.errors import FileError, FormatError

INFO, LINE = ".debug_info", ".debug_line"
_PREFIX, _OLD_PREFIX = ".debug_", ".zdebug_"
"""Prefixes of their names; sections that GNU tools compressed before 2014 have the second one."""
_MAX_STRING = 1 << 16
"""Maximum size in bytes; a longer string is malformed."""
_STRING_CHUNK = 256

_Read = Callable[[int, int], bytes]
"""``(offset, size)``: returns up to ``size`` bytes; fewer at the end."""


class DebugSections:
    """The sections ``.debug_*`` of a file.  A compressed section is decompressed as far as it is read.

    :raises FileError: the file cannot be read.
    """

    def __init__(self, path: PathLike) -> None:
        self._path = path
        self._reader = FileReader(path)
        self._read: dict[str, _Read] = {}
        with opened(path) as binary:
            self.byteorder = binary.byteorder
            """``"little"`` or ``"big"``."""
            self.mark = "<" if binary.byteorder == "little" else ">"
            """The byte order in formats of :mod:`struct`."""
            self._file_size = binary.size
            self._is_object = binary.is_object
            self.unreadable = ""
            """Why a section that was read cannot be decompressed; empty: no such section was read."""
            found = [section for section in binary.sections if section.has_contents]
        self._sections = {
            _PREFIX + section.name[len(prefix) :]: section
            for prefix in (_OLD_PREFIX, _PREFIX)
            for section in found
            if section.name.startswith(prefix)
        }

    def has(self, name: str) -> bool:
        """Return whether there is a section with this name that has contents."""
        return name in self._sections

    def read(self, name: str, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes of a section; fewer at its end, and none if there is no such section.

        :raises FileError: the section cannot be decompressed.
        """
        if name not in self._read:
            section = self._sections.get(name)
            self._read[name] = self._reading(section) if section is not None else lambda offset, size: b""  # noqa: ARG005
        return self._read[name](offset, size)

    def exactly(self, name: str, offset: int, size: int) -> bytes:
        """Return ``size`` bytes of a section.

        :raises FormatError: the section does not have them.
        :raises FileError: see :meth:`read`.
        """
        data = self.read(name, offset, size)
        if len(data) != size:
            raise FormatError(f"{size - len(data):,} of {size:,} bytes are missing", offset, name)
        return data

    def string(self, name: str, offset: int) -> str:
        """Return the string at an offset of a section.

        :raises FormatError: the section ends before the string does, or the string is too long.
        :raises FileError: see :meth:`read`.
        """
        size = _STRING_CHUNK
        while size <= _MAX_STRING:
            data = self.read(name, offset, size)
            text, end, _ = data.partition(b"\0")
            if end:
                return decoded(text)
            if len(data) < size:
                break
            size *= 16
        raise FormatError("a string does not end", offset, name)

    def _reading(self, section: SectionHeader) -> _Read:
        if self._is_object:
            with self._noting(), opened(self._path) as binary:
                data = binary.relocated(section)  # the references of an object file are in its relocations
            return lambda offset, size: data[offset : offset + size]
        if section.is_compressed or section.name.startswith(_OLD_PREFIX):
            with self._noting(), opened(self._path) as binary:
                read = binary.read_decompressed(section)
            return lambda offset, size: self._decompressed(read, offset, size)
        start, end = section.offset, min(section.size, max(self._file_size - section.offset, 0))
        return lambda offset, size: self._reader.read(start + offset, max(min(size, end - offset), 0))

    def _decompressed(self, read: _Read, offset: int, size: int) -> bytes:
        try:
            return read(offset, size)
        except FileError as error:
            self.unreadable = f"{self._path}: {error}"
            raise FileError(self.unreadable) from error

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """Note why a section cannot be decompressed."""
        try:
            yield
        except FileError as error:
            self.unreadable = str(error)
            raise


def decoded(name: bytes) -> str:
    """Return a name as text."""
    return name.decode("utf-8", "backslashreplace")
