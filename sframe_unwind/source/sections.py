"""The debug sections of a file, of which only the parts that are asked for are read."""

from __future__ import annotations

from typing import Callable, Literal

from sframe_unwind.elf.constants import SHF_COMPRESSED
from sframe_unwind.elf.file import PathLike, opened
from sframe_unwind.elf.reader import FileReader
from sframe_unwind.errors import FileError, FormatError

_PREFIX = ".debug_"
_MAX_STRING = 1 << 16
"""Bytes; longer strings are cut."""
_STRING_CHUNK = 256

ByteOrder = Literal["little", "big"]
Read = Callable[[int, int], bytes]
"""``(offset, size)``: returns up to ``size`` bytes; fewer at the end."""


class DebugSections:
    """The sections ``.debug_*`` of a file.

    :raises FileError: the file cannot be read.
    """

    def __init__(self, path: PathLike) -> None:
        self._path = path
        self._readers: dict[str, Read] = {}
        self._sizes: dict[str, int] = {}
        self._compressed: set[str] = set()
        reader = FileReader(path)
        with opened(path) as elf:
            self.byteorder: ByteOrder = "little" if elf.little_endian else "big"
            """``"little"`` or ``"big"``."""
            for section in elf.iter_sections():
                name = section.name
                if not name.startswith(_PREFIX) or section["sh_type"] == "SHT_NOBITS" or self.has(name):
                    continue
                if section["sh_flags"] & SHF_COMPRESSED:
                    self._compressed.add(name)
                else:
                    start, size = section["sh_offset"], section["sh_size"]
                    self._readers[name], self._sizes[name] = _of_file(reader, start, size), size

    def has(self, name: str) -> bool:
        """Return whether there is a section."""
        return name in self._sizes or name in self._compressed

    def size(self, name: str) -> int:
        """Return the size of a section in bytes; 0: the file has none."""
        self._open(name)
        return self._sizes.get(name, 0)

    def read(self, name: str, offset: int, size: int) -> bytes:
        """Return ``size`` bytes of a section.

        :raises FormatError: the section does not have them.
        """
        self._open(name)
        data = self._readers[name](offset, size) if name in self._readers else b""
        if len(data) != size:
            raise FormatError(f"{size} bytes are missing", offset, name)
        return data

    def _open(self, name: str) -> None:
        """Decompress a section if that is necessary.

        :raises FormatError: it cannot be decompressed.
        """
        if name not in self._compressed:
            return
        self._compressed.remove(name)
        try:
            with opened(self._path) as elf:
                data = elf.named(name).data()
        except FileError as error:
            raise FormatError(str(error), section=name) from error
        self._readers[name], self._sizes[name] = _within(data), len(data)

    def string(self, name: str, offset: int) -> str:
        """Return the string at an offset of a section.

        :raises FormatError: the section ends before it.
        """
        found, limit = b"", self.size(name)
        while offset + len(found) < limit and len(found) < _MAX_STRING:
            start = offset + len(found)
            found += self.read(name, start, min(_STRING_CHUNK, limit - start))
            text, end, _ = found.partition(b"\0")
            if end:
                return text.decode("utf-8", "backslashreplace")
        if offset >= limit:
            raise FormatError("a string lies outside the section", offset, name)
        return found.decode("utf-8", "backslashreplace")


def _within(data: bytes) -> Read:
    return lambda offset, size: data[offset : offset + size]


def _of_file(reader: FileReader, start: int, size: int) -> Read:
    return lambda offset, length: reader.read(start + offset, min(length, max(size - offset, 0)))
