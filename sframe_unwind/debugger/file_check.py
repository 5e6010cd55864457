"""Tells from the headers of a file whether it has something that a plugin needs; it reads little of the file.

:mod:`sframe_unwind.debugger.of_use` first glances at the file, at less cost.
"""

from __future__ import annotations

import functools
from contextlib import suppress
from functools import cached_property
from io import FileIO

from sframe_unwind.debugger.glance import LONGEST_TABLE, REGISTERING, USED_SECTIONS, state_of
from sframe_unwind.elf.constants import PT_GNU_SFRAME, SHT_STRTAB
from sframe_unwind.elf.headers import Headers
from sframe_unwind.elf.records import SectionHeader
from sframe_unwind.errors import FileError

_COMPRESSED = (b".gnu_debugdata",)
"""Name of the section with a compressed symbol table."""


def has_use(path: str, may_register: bool) -> bool:
    """Return whether a file has SFrame, is a Linux kernel, or registers code at run time.

    :param may_register: whether a file with the name :data:`REGISTERING` registers code.
    :raises OSError: the file cannot be read.
    """
    try:
        with FileIO(path) as stream:
            file = _File(stream)
            if file.has_segment(PT_GNU_SFRAME) or file.has_section(USED_SECTIONS):
                return True
            return may_register and REGISTERING in file.symbol_names()
    except FileError:
        return False  # not an ELF file of class 64, or a damaged one


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
        return any(one.type == SHT_STRTAB and one.size > LONGEST_TABLE for one in self._sections)

    def names(self, only_loaded: bool = False) -> bytes:
        """Return the tables with the names of symbols.

        :param only_loaded: leave out tables that are not loaded; the names of dynamic symbols are loaded.
        """
        tables = (one for one in self._sections if one.type == SHT_STRTAB and (one.is_loaded or not only_loaded))
        return b"".join(self.read(one.offset, min(one.size, LONGEST_TABLE)) for one in tables)

    @cached_property
    def _sections(self) -> tuple[SectionHeader, ...]:
        with suppress(FileError):
            return self.unnamed_sections
        return ()
