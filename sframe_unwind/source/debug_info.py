"""The places in the source of an address: the line, and the calls of the inlined functions that it is in.

pyelftools decodes the debug information.  It is read as far as addresses are asked for: a unit's functions and lines
when an address lies in the unit.
"""

from __future__ import annotations

import contextlib
from functools import cached_property
from typing import Any, NamedTuple

from sframe_unwind.address import RangeMap
from sframe_unwind.elf.file import PathLike, opened
from sframe_unwind.source.functions import UnitFunctions, ranges_of
from sframe_unwind.source.lines import LineTable

_NEEDED = ({".debug_info", ".debug_line"}, {".zdebug_info", ".zdebug_line"})
"""Sections without which there is nothing to tell; the second are compressed as GNU tools did before 2014."""


class Place(NamedTuple):
    """A place in the source."""

    function: str
    """The function as its linkage name, else as the source has it; empty: not known."""
    file: str
    """Path of the file as the compiler wrote it; empty: not known."""
    line: int
    """0: not known."""


def _survived() -> contextlib.AbstractContextManager[None]:
    """Go on behind damaged information: pyelftools raises what it comes across in it, of any type."""
    return contextlib.suppress(Exception)


class DebugInfo:
    """The debug information of a file.

    :raises FileError: the file cannot be read.
    """

    def __init__(self, path: PathLike) -> None:
        self._path = path
        self._units: dict[int, _Unit | None] = {}
        self._known: dict[int, list[Place]] = {}
        with opened(path) as elf:
            found = {section.name for section in elf.iter_sections() if section["sh_type"] != "SHT_NOBITS"}
        self.exists = any(names <= found for names in _NEEDED)
        """Whether the file has debug information at all."""

    def places(self, address: int) -> list[Place]:
        """Return the places of an address in the file, from the innermost inlined function to the function itself.

        The result is empty where there is no debug information, or where it is malformed.
        """
        if address not in self._known:
            self._known[address] = self._places(address)
        return self._known[address]

    def _places(self, address: int) -> list[Place]:
        if self._dwarf is None:
            return []
        offset = self._by_aranges.get(address)
        if offset is None:
            offset = self._by_unit.get(address)
        if offset is None:
            return []
        if offset not in self._units:
            self._units[offset] = None
            with _survived():
                self._units[offset] = _Unit(self._dwarf.get_CU_at(offset))
        unit = self._units[offset]
        if unit is not None:
            with _survived():
                return unit.places(address)
        return []

    @cached_property
    def _dwarf(self) -> Any:
        """What pyelftools has of the file; ``None``: it cannot read it."""
        with _survived(), opened(self._path) as elf:
            # Without links: this project looks for separate debug files by itself, and only where its user wants.
            return elf.get_dwarf_info(relocate_dwarf_sections=False, follow_links=False)
        return None

    @cached_property
    def _by_aranges(self) -> RangeMap[int]:
        entries: list[Any] = []
        with _survived():
            found = self._dwarf.get_aranges()
            entries = found.entries if found is not None else []
        return RangeMap((one.begin_addr, one.begin_addr + one.length, one.info_offset) for one in entries if one.length)

    @cached_property
    def _by_unit(self) -> RangeMap[int]:
        """The ranges that units have themselves: not all compilers write ``.debug_aranges``."""
        known = {offset for _, _, offset in self._by_aranges}
        found: list[tuple[int, int, int]] = []
        with _survived():
            for unit in self._dwarf.iter_CUs():
                if unit.cu_offset in known:
                    continue
                with _survived():
                    ranges = ranges_of(unit.get_top_DIE())
                    found += [(start, end, unit.cu_offset) for start, end in ranges if start < end]
        return RangeMap(found)


class _Unit:
    """A unit with code."""

    def __init__(self, unit: Any) -> None:
        self._functions = UnitFunctions(unit)
        self._lines = LineTable(unit)

    def places(self, address: int) -> list[Place]:
        file, line = self._lines.at(address)
        found = []
        for code in reversed(self._functions.chain(address)):
            found.append(Place(code.name, file, line))
            file, line = self._lines.path(code.call_file), code.call_line
        return found or ([Place("", file, line)] if line else [])
