"""The places in the source of an address: the line, and the calls of the inlined functions that it is in."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from typing import NamedTuple

from sframe_unwind.address import RangeMap
from sframe_unwind.elf.file import PathLike
from sframe_unwind.errors import FormatError
from sframe_unwind.source import units
from sframe_unwind.source.inlining import Code, Names, functions
from sframe_unwind.source.line_program import LineTable
from sframe_unwind.source.ranges import read_aranges
from sframe_unwind.source.sections import DebugSections
from sframe_unwind.source.units import Unit, all_units


class Place(NamedTuple):
    """A place in the source."""

    function: str
    """The function as its linkage name, else as the source has it; empty: not known."""
    file: str
    """Path of the file as the compiler wrote it; empty: not known."""
    line: int
    """0: not known."""


class DebugInfo:
    """The debug information of a file, read as far as addresses are asked for.

    :raises FileError: the file cannot be read.
    """

    def __init__(self, path: PathLike) -> None:
        self._sections = DebugSections(path)
        self._units: dict[int, Unit] = {}
        self._tables: dict[int, LineTable | None] = {}
        self._functions: dict[int, list[Code]] = {}
        self._names = Names(self._unit_with)
        self._known: dict[int, list[Place]] = {}

    @property
    def exists(self) -> bool:
        """Whether the file has debug information at all."""
        return self._sections.has(units.INFO) and self._sections.has(".debug_line")

    def places(self, address: int) -> list[Place]:
        """Return the places of an address in the file, from the innermost inlined function to the function itself.

        The result is empty where there is no debug information, or a unit that has the address is malformed.
        """
        if address not in self._known:
            try:
                unit = self._unit_of(address)
                self._known[address] = self._places(unit, address) if unit is not None else []
            except FormatError:
                self._known[address] = []
        return self._known[address]

    def _places(self, unit: Unit, address: int) -> list[Place]:
        table = self._line_table(unit)
        row = table.at(address) if table is not None else None
        file, line = (table.path(row.file), row.line) if table is not None and row is not None else ("", 0)
        chain = self._chain(unit, address)
        found = []
        for code in reversed(chain):
            found.append(Place(self._names.name(unit, code.entry), file, line))
            file, line = table.path(code.call_file) if table is not None else "", code.call_line
        return found or ([Place("", file, line)] if line else [])

    def _chain(self, unit: Unit, address: int) -> list[Code]:
        """Return the function that an address is in, and then the inlined calls, from the outermost inward."""
        if unit.offset not in self._functions:
            self._functions[unit.offset] = functions(unit)
        chain: list[Code] = []
        for code in self._functions[unit.offset]:
            if any(start <= address < end for start, end in code.ranges):
                chain = [*chain, code] if code.is_inlined else [code]
        return chain

    def _line_table(self, unit: Unit) -> LineTable | None:
        offset = unit.number(units.AT_STMT_LIST)
        if offset is None:
            return None
        if offset not in self._tables:
            folder = unit.text(unit.top.get(units.AT_COMP_DIR))
            self._tables[offset] = LineTable(self._sections, offset, folder, unit.encoding)
        return self._tables[offset]

    def _unit_of(self, address: int) -> Unit | None:
        found = self._aranges.get(address)
        if found is None:
            found = self._by_unit.get(address)
        return self._unit(found) if found is not None else None

    @cached_property
    def _aranges(self) -> RangeMap[int]:
        return RangeMap(read_aranges(self._sections))

    @cached_property
    def _by_unit(self) -> RangeMap[int]:
        """The ranges that units have themselves: not all compilers write ``.debug_aranges``."""
        known = {offset for _, _, offset in self._aranges}
        found = []
        for unit in self._all_units:
            if unit.offset in known or unit.is_type:
                continue
            try:
                found += [(start, end, unit.offset) for start, end in unit.ranges]
            except FormatError:
                continue
        return RangeMap(found)

    @cached_property
    def _all_units(self) -> list[Unit]:
        return list(all_units(self._sections))

    def _unit(self, offset: int) -> Unit:
        if offset not in self._units:
            self._units[offset] = Unit(self._sections, offset)
        return self._units[offset]

    def _unit_with(self, offset: int) -> Unit:
        starts = [unit.offset for unit in self._all_units]
        number = bisect_right(starts, offset) - 1
        if number < 0 or offset >= self._all_units[number].end:
            raise FormatError("a reference to what is in no unit", offset, units.INFO)
        return self._unit(starts[number])
