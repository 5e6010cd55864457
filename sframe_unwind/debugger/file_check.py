"""Tells from the headers of a file whether a plugin has anything to do for it.

A plugin asks this for each file that a debugger loads, before it loads more of itself.  So this module imports little,
and reads little of a file.
"""

from __future__ import annotations

import functools
import os
from contextlib import suppress
from functools import cached_property
from io import FileIO

from sframe_unwind.elf.constants import PT_GNU_SFRAME, SHT_STRTAB
from sframe_unwind.elf.headers import Headers
from sframe_unwind.elf.records import SectionHeader
from sframe_unwind.errors import FileError

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
    """Return whether a file may have a symbol with a name; ``True`` if the file cannot be read."""
    try:
        return _may_have_symbol(path, name, state_of(path))
    except (OSError, ValueError):
        return True


def may_have_section(path: str, *names: bytes) -> bool:
    """Return whether a file may have a section with contents and one of some names; ``True`` if it cannot be read."""
    try:
        return _may_have_section(path, names, state_of(path))
    except (OSError, ValueError):
        return True


def state_of(path: str) -> tuple[int, ...]:
    """Return a value that changes when a file is replaced, for a cache: debuggers load the same libraries again.

    :raises OSError: there is no such file.
    :raises ValueError: the path has a NUL.
    """
    found = os.stat(path)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


@functools.lru_cache(maxsize=1024)
def _may_have_symbol(path: str, name: str, _state: tuple[int, ...]) -> bool:
    try:
        with FileIO(path) as stream:
            file = _File(stream)
            is_unknown = file.has_section(_COMPRESSED) or file.has_long_names()
            return is_unknown or name.encode() in file.names()
    except FileError:
        return True


@functools.lru_cache(maxsize=1024)
def _may_have_section(path: str, names: tuple[bytes, ...], _state: tuple[int, ...]) -> bool:
    try:
        with FileIO(path) as stream:
            return _File(stream).has_section(names)
    except FileError:
        return True


@functools.lru_cache(maxsize=1024)
def _is_of_use(path: str, _state: tuple[int, ...]) -> bool:
    try:
        with FileIO(path) as stream:
            file = _File(stream)
            if file.has_segment(PT_GNU_SFRAME) or file.has_section(_USED):
                return True
            return _LIBRARY not in os.path.basename(path) and _REGISTERING in file.symbol_names()
    except FileError:
        return False  # not an ELF file of class 64, or a damaged one


class _File(Headers):
    """An open file.  Tables that are damaged are empty."""

    def has_segment(self, kind: int) -> bool:
        """Return whether there is a segment of a type."""
        with suppress(FileError):
            return any(segment.type == kind for segment in self.segments)
        return False

    def has_section(self, wanted: tuple[bytes, ...]) -> bool:
        """Return whether there is a section with contents and one of the names."""
        names = self.section_names if self._sections else b""
        if not any(name in names for name in wanted):  # as in nearly every file
            return False
        endings = tuple(name + b"\0" for name in wanted)
        return any(names.startswith(endings, one.name_offset) for one in self._sections if one.has_contents)

    def symbol_names(self) -> bytes:
        """Return the names of the dynamic symbols; of a file without any, those of all symbols."""
        return self.names(only_loaded=True) or self.names()

    def has_long_names(self) -> bool:
        """Return whether a table of names is too long to be read as a whole."""
        return any(one.type == SHT_STRTAB and one.size > _MOST for one in self._sections)

    def names(self, only_loaded: bool = False) -> bytes:
        """Return the tables with the names of symbols.

        :param only_loaded: leave out tables that are not loaded; the names of dynamic symbols are loaded.
        """
        tables = (one for one in self._sections if one.type == SHT_STRTAB and (one.is_loaded or not only_loaded))
        return b"".join(self.read(one.offset, min(one.size, _MOST)) for one in tables)

    @cached_property
    def _sections(self) -> tuple[SectionHeader, ...]:
        with suppress(FileError):
            return self.unnamed_sections
        return ()
