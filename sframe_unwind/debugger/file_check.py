"""Tells from the headers of a file whether a plugin has anything to do for it.

A plugin asks this for each file that a debugger loads, before it loads more of itself.  So this module imports little,
and reads little of a file.
"""

from __future__ import annotations

import functools
import os
import struct

_HEADER = 64
"""Size of an ELF header of class 64, in bytes.  SFrame has no ABI of class 32."""
_PT_GNU_SFRAME = 0x6474E554
_SHT_STRTAB, _SHT_NOBITS, _SHF_ALLOC, _SHN_XINDEX = 3, 8, 2, 0xFFFF
_USED = (b".sframe", b".orc_unwind", b"__ksymtab")
"""Names of sections: SFrame; those of Linux kernels, whose entry code is unwound whatever unwind data they have."""
_MOST = 1 << 24
"""Maximum size in bytes of a table that is read: a damaged header must not fill the memory."""
_COMPRESSED = (b".gnu_debugdata",)
"""Name of the section with a compressed symbol table."""
_REGISTERING = b"_U_dyn_register\0"
"""The function of libunwind that registers code at run time."""
_LIBRARY = "unwind"
"""A part of the names of libunwind's own files, which do not call it."""


def is_of_use(path: str) -> bool | None:
    """Return whether a file has SFrame, is a Linux kernel, or registers code at run time; ``None``: it is unreadable.

    A file without section headers has the segment ``PT_GNU_SFRAME``; object files, kernel modules among them, and the
    output of some linkers have only the section.
    """
    try:
        return _is_of_use(path, state_of(path))
    except (OSError, ValueError):
        return None


def may_have_symbol(path: str, name: str) -> bool:
    """Return whether a symbol of a file can have a name; a file that cannot be read may have each."""
    try:
        return _may_have_symbol(path, name, state_of(path))
    except (OSError, ValueError):
        return True


def may_have_section(path: str, *names: bytes) -> bool:
    """Return whether a file can have a section with contents and one of some names; one that cannot be read may."""
    try:
        return _may_have_section(path, names, state_of(path))
    except (OSError, ValueError):
        return True


def state_of(path: str) -> tuple[int, ...]:
    """Return what shows whether a file was replaced; the same libraries come again and again.

    :raises OSError: there is no such file.
    :raises ValueError: the path has a NUL.
    """
    found = os.stat(path)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


@functools.lru_cache(maxsize=1024)
def _may_have_symbol(path: str, name: str, _state: tuple[int, ...]) -> bool:
    try:
        with open(path, "rb", buffering=0) as file:
            headers = _Headers(file.fileno())
            is_unknown = headers.has_section(_COMPRESSED) or headers.has_long_names()
            return is_unknown or name.encode() in headers.names()
    except struct.error:
        return True


@functools.lru_cache(maxsize=1024)
def _may_have_section(path: str, names: tuple[bytes, ...], _state: tuple[int, ...]) -> bool:
    try:
        with open(path, "rb", buffering=0) as file:
            return _Headers(file.fileno()).has_section(names)
    except struct.error:
        return True


@functools.lru_cache(maxsize=1024)
def _is_of_use(path: str, _state: tuple[int, ...]) -> bool:
    try:
        with open(path, "rb", buffering=0) as file:
            headers = _Headers(file.fileno())
            if headers.has_segment(_PT_GNU_SFRAME) or headers.has_section(_USED):
                return True
            return _LIBRARY not in os.path.basename(path) and _REGISTERING in headers.symbol_names()
    except struct.error:
        return False  # not an ELF file of class 64, or a damaged one


class _Headers:
    """The program headers and section headers of an open file.

    :raises OSError: the file cannot be read.
    :raises struct.error: it has no such headers.
    """

    def __init__(self, file: int) -> None:
        self._file = file
        header = os.pread(file, _HEADER, 0)
        if header[:5] != b"\x7fELF\x02":
            raise struct.error("not an ELF file of class 64")
        self._mark = "<" if header[5] == 1 else ">"
        segments, sections = struct.unpack_from(self._mark + "QQ", header, 32)
        size, count, section_size, section_count, names = struct.unpack_from(self._mark + "HHHHH", header, 54)
        self._segments = [] if not segments or size != 56 else self._read(segments, "IIQQQQQQ", count)
        self._sections = [] if not sections or section_size != 64 else self._read(sections, "IIQQQQIIQQ", section_count)
        if sections and section_size == 64 and not section_count:  # the number does not fit the header
            (first,) = self._read(sections, "IIQQQQIIQQ", 1)
            self._sections = self._read(sections, "IIQQQQIIQQ", first[5])
        self._names = self._sections[0][6] if names == _SHN_XINDEX and self._sections else names

    def _read(self, offset: int, layout: str, count: int) -> list[tuple[int, ...]]:
        one = struct.Struct(self._mark + layout)
        data = self._bytes(offset, one.size * count)
        return list(one.iter_unpack(data[: len(data) // one.size * one.size]))

    def _bytes(self, offset: int, size: int) -> bytes:
        return os.pread(self._file, min(size, _MOST), offset) if offset < 1 << 63 else b""

    def has_segment(self, kind: int) -> bool:
        """Return whether there is a segment of a type."""
        return any(segment[0] == kind for segment in self._segments)

    def has_section(self, wanted: tuple[bytes, ...]) -> bool:
        """Return whether there is a section with contents and one of the names."""
        if self._names >= len(self._sections):
            return False
        table = self._sections[self._names]
        names = self._bytes(table[4], table[5])
        if not any(name in names for name in wanted):  # as in nearly every file
            return False
        endings = tuple(name + b"\0" for name in wanted)
        return any(names.startswith(endings, one[0]) for one in self._sections if one[1] != _SHT_NOBITS)

    def symbol_names(self) -> bytes:
        """Return the names of the dynamic symbols; of a file without any, those of all symbols."""
        return self.names(only_loaded=True) or self.names()

    def has_long_names(self) -> bool:
        """Return whether a table of names is too long to be read as a whole."""
        return any(one[1] == _SHT_STRTAB and one[5] > _MOST for one in self._sections)

    def names(self, only_loaded: bool = False) -> bytes:
        """Return the tables with the names of symbols.

        :param only_loaded: leave out those that are not loaded: of the dynamic symbols, the names are.
        """
        tables = [one for one in self._sections if one[1] == _SHT_STRTAB and (one[2] & _SHF_ALLOC or not only_loaded)]
        return b"".join(self._bytes(one[4], one[5]) for one in tables)
