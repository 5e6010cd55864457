"""Finds the source places of an address: its line, and the calls of the functions that were inlined at it.

The debug information is decoded here, not by pyelftools, which makes a Python object of each entry and each row of a
line number program.  That took 1.2 s and 55 MB for the eight units of a stack of Python 3.13.  Only a few ranges of
these units are needed, and their rows only as numbers.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from functools import cached_property

from sframe_unwind.address import RangeMap
from sframe_unwind.elf import PathLike
from sframe_unwind.errors import FormatError, SFrameError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.source.abbreviations import AT_DWO_NAME, AT_STMT_LIST, Abbreviations
from sframe_unwind.source.forms import Encoding
from sframe_unwind.source.functions import FindUnit, UnitFunctions
from sframe_unwind.source.line_program import LineProgram
from sframe_unwind.source.ranges import address_ranges
from sframe_unwind.source.sections import INFO, LINE, DebugSections
from sframe_unwind.source.units import Unit, unit_offsets


class Place(NamedTuple):
    """A place in the source."""

    function: str
    """The linkage name of the function, or its name in the source; empty: not known."""
    file: str
    """Path of the file in the compiler's spelling; empty: not known."""
    line: int
    """Number of the line; 0: not known."""


def _survived() -> contextlib.AbstractContextManager[None]:
    """Continue after damaged information."""
    return contextlib.suppress(SFrameError)


class DebugInfo:
    """The debug information of a file, read as far as it is needed.

    :raises FileError: the file cannot be read.
    """

    def __init__(self, path: PathLike) -> None:
        self._sections = DebugSections(path)
        self._abbreviations: dict[tuple[int, Encoding], Abbreviations] = {}
        self._units: dict[int, Unit] = {}
        self._code: dict[int, _UnitCode] = {}
        self._known: dict[int, list[Place]] = {}
        self.exists = self._sections.has(INFO) and self._sections.has(LINE)
        """Whether the file has debug information at all."""
        self._path = path
        self._is_split = False

    @property
    def lacks(self) -> str:
        """The data that the places lack, and the reason, in one line; empty: nothing is known to be missing."""
        if self._sections.unreadable:
            return self._sections.unreadable
        what = "its debug information is in other files (.dwo, .dwp), which are not read: inlined functions are missing"
        return f"{self._path}: {what}" if self._is_split else ""

    def places(self, address: int) -> list[Place]:
        """Return the places of an address in the file, from the innermost inlined function to the function itself.

        The result is empty if there is no debug information, or if it is malformed.
        """
        if address not in self._known:
            found: list[Place] = []
            with _survived():
                found = self._places(address)
            self._known[address] = found
        return self._known[address]

    def _places(self, address: int) -> list[Place]:
        offset = self._by_aranges.get(address)
        if offset is None:
            offset = self._by_unit.get(address)
        if offset is None:
            return []
        if offset not in self._code:
            unit = self._unit(offset)
            self._is_split = self._is_split or unit.of_top(AT_DWO_NAME) is not None
            self._code[offset] = _UnitCode(unit, self._unit_with)
        return self._code[offset].places(address)

    @cached_property
    def _by_aranges(self) -> RangeMap[int]:
        found: list[tuple[int, int, int]] = []
        with _survived():
            found = address_ranges(self._sections)
        return RangeMap(found)

    @cached_property
    def _by_unit(self) -> RangeMap[int]:
        """The ranges that the units themselves have: not all compilers write ``.debug_aranges``."""
        known = {offset for _, _, offset in self._by_aranges}
        found: list[tuple[int, int, int]] = []
        for offset in self._offsets:
            if offset in known:
                continue
            with _survived():
                unit = Unit(self._sections, offset, self._find_abbreviations)
                if unit.has_code:
                    found += ((start, end, offset) for start, end in unit.ranges)
        return RangeMap(found)

    @cached_property
    def _offsets(self) -> list[int]:
        """The offsets of the units."""
        found: list[int] = []
        with _survived():
            found.extend(unit_offsets(self._sections))
        return found

    def _unit(self, offset: int) -> Unit:
        if offset not in self._units:
            self._units[offset] = Unit(self._sections, offset, self._find_abbreviations)
        return self._units[offset]

    def _unit_with(self, offset: int) -> Unit:
        """Return the unit that contains an offset.

        :raises FormatError: there is none.
        """
        number = bisect_right(self._offsets, offset) - 1
        if number < 0:
            raise FormatError("a reference to what is in no unit", offset, INFO)
        return self._unit(self._offsets[number])

    def _find_abbreviations(self, offset: int, encoding: Encoding) -> Abbreviations:
        """Return the abbreviations at an offset; the units of a program with link-time optimisation share them."""
        key = offset, encoding
        if key not in self._abbreviations:
            self._abbreviations[key] = Abbreviations(self._sections, offset, encoding)
        return self._abbreviations[key]


class _UnitCode:
    """The functions and the lines of a unit."""

    def __init__(self, unit: Unit, find_unit: FindUnit) -> None:
        self._unit = unit
        self._find_unit = find_unit
        self._functions = UnitFunctions(unit)

    @cached_property
    def _lines(self) -> LineProgram | None:
        """The line number program; ``None``: there is none, or it is malformed."""
        offset = self._unit.of_top(AT_STMT_LIST)
        if offset is None:
            return None
        lowest = min((start for start, _ in self._unit.ranges), default=0)
        with _survived():
            return LineProgram(self._unit.sections, offset, self._unit.folder, lowest)
        return None

    def places(self, address: int) -> list[Place]:
        """Return the places of an address, see :meth:`DebugInfo.places`.

        :raises SFrameError: the functions of the unit cannot be read.
        """
        number, line = self._lines.at(address) if self._lines is not None else (0, 0)
        found = []
        for code in self._functions.chain(address):
            found.append(Place(code.name(self._find_unit), self._path(number), line))
            number, line = code.call
        return found or ([Place("", self._path(number), line)] if line else [])

    def _path(self, number: int) -> str:
        return self._lines.path(number) if self._lines is not None else ""
