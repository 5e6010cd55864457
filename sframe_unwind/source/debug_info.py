"""The places in the source of an address: the line, and the calls of the inlined functions that it is in.

pyelftools decodes the debug information.  It is read as far as addresses are asked for: a unit's functions and lines
when an address lies in the unit.
"""

from __future__ import annotations

import contextlib
from functools import cached_property
from typing import NamedTuple

from sframe_unwind.address import RangeMap
from sframe_unwind.elf import PathLike, opened
from sframe_unwind.errors import SFrameError
from sframe_unwind.source._dwarf import Dwarf, Unit
from sframe_unwind.source.functions import UnitFunctions
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
    """Go on behind damaged information."""
    return contextlib.suppress(SFrameError)


class DebugInfo:
    """The debug information of a file.

    :raises FileError: the file cannot be read.
    """

    def __init__(self, path: PathLike) -> None:
        self._path = path
        self._units: dict[int, _Unit | None] = {}
        self._known: dict[int, list[Place]] = {}
        with opened(path) as binary:
            found = {section.name for section in binary.sections if section.has_contents}
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
                self._units[offset] = _Unit(self._dwarf.unit(offset))
        unit = self._units[offset]
        if unit is not None:
            with _survived():
                return unit.places(address)
        return []

    @cached_property
    def _dwarf(self) -> Dwarf | None:
        with _survived():
            return Dwarf(self._path)
        return None

    @cached_property
    def _by_aranges(self) -> RangeMap[int]:
        found: list[tuple[int, int, int]] = []
        with _survived():
            found = self._dwarf.address_ranges() if self._dwarf is not None else []
        return RangeMap(found)

    @cached_property
    def _by_unit(self) -> RangeMap[int]:
        """The ranges that units have themselves: not all compilers write ``.debug_aranges``."""
        known = {offset for _, _, offset in self._by_aranges}
        found: list[tuple[int, int, int]] = []
        with _survived():
            for unit in self._dwarf.units() if self._dwarf is not None else ():
                if unit.offset in known:
                    continue
                with _survived():
                    found += [(start, end, unit.offset) for start, end in unit.top().ranges() if start < end]
        return RangeMap(found)


class _Unit:
    """A unit with code."""

    def __init__(self, unit: Unit) -> None:
        self._functions = UnitFunctions(unit)
        self._lines = LineTable(unit)

    def places(self, address: int) -> list[Place]:
        file, line = self._lines.at(address)
        found = []
        for code in reversed(self._functions.chain(address)):
            found.append(Place(code.name, file, line))
            file, line = self._lines.path(code.call_file), code.call_line
        return found or ([Place("", file, line)] if line else [])
