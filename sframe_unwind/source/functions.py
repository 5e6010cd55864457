"""Functions of a unit, and those that were inlined into them (DWARF 5, 3.3.8)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from sframe_unwind.address import Range
from sframe_unwind.errors import FormatError
from sframe_unwind.source._dwarf import Entry, Unit

_SUBPROGRAM, _INLINED = "DW_TAG_subprogram", "DW_TAG_inlined_subroutine"
_NAMES = ("DW_AT_linkage_name", "DW_AT_MIPS_linkage_name")
_ORIGINS = ("DW_AT_abstract_origin", "DW_AT_specification")
_DEPTH = 8
"""How often an entry may refer to another."""
_MAX_ENTRIES = 1 << 20
"""Entries that are read of one unit; a unit of a whole program has some hundred thousand."""


class Code:
    """A function with code, or an inlined call.

    :param ranges: start and end address (exclusive).
    """

    def __init__(self, entry: Entry, ranges: list[Range]) -> None:
        self.entry = entry
        self._ranges = ranges

    def contains(self, address: int) -> bool:
        """Return whether an address is in the code."""
        return any(start <= address < end for start, end in self._ranges)

    @cached_property
    def name(self) -> str:
        """The name, mangled where that is known; empty: it has none."""
        entry, plain = self.entry, ""
        for _ in range(_DEPTH):
            for mangled in _NAMES:
                if entry.has(mangled):
                    return _decoded(entry.text(mangled))
            plain = plain or _decoded(entry.text("DW_AT_name"))
            origin = next((name for name in _ORIGINS if entry.has(name)), None)
            if origin is None:
                break
            entry = entry.referred(origin)
        return plain

    @property
    def call_file(self) -> int:
        """Number of the file that has the call; 0: it is not inlined."""
        return self.entry.number("DW_AT_call_file")

    @property
    def call_line(self) -> int:
        """Line of the call; 0: it is not inlined."""
        return self.entry.number("DW_AT_call_line")


class UnitFunctions:
    """The functions of a unit, each with what is inlined into it read when an address lies in it."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._left = _MAX_ENTRIES
        self._inlined: dict[int, list[Code]] = {}

    def chain(self, address: int) -> list[Code]:
        """Return the function that an address is in, and then the inlined calls, from the outermost inward.

        :raises FormatError: the unit has too many entries.
        :raises FileError: an entry cannot be read.
        """
        function = next((code for code in self._functions if code.contains(address)), None)
        if function is None:
            return []
        offset = function.entry.offset
        if offset not in self._inlined:
            self._inlined[offset] = list(self._code(function.entry, _INLINED))
        return [function, *(code for code in self._inlined[offset] if code.contains(address))]

    @cached_property
    def _functions(self) -> list[Code]:
        return list(self._code(self._unit.top(), _SUBPROGRAM))

    def _code(self, parent: Entry, tag: str) -> Iterator[Code]:
        """Yield what has code and a tag, below an entry; an inlined call follows what it is in."""
        for entry in self._below(parent, whole=tag == _INLINED):
            if entry.tag != tag:
                continue
            ranges = entry.ranges()
            if tag == _INLINED:
                # Of an inlined call that has nothing but the place where a statement begins, GCC lists an empty range.
                # GDB 16 and later take it to be one byte.
                ranges = [(start, end + (start == end)) for start, end in ranges]
            if ranges:
                yield Code(entry, ranges)

    def _below(self, parent: Entry, whole: bool) -> Iterator[Entry]:
        """Yield the entries below one in their order.

        pyelftools' own iterators follow a sibling that lies before its entry for ever.

        :param whole: ``False``: but not those below functions and types that say where they end.
        """
        if not parent.has_children:
            return
        offset, depth = parent.offset + parent.size, 1
        while depth:
            if not self._left:
                raise FormatError(f"more than {_MAX_ENTRIES:,} entries in a unit", self._unit.offset, ".debug_info")
            self._left -= 1
            entry = self._unit.entry(offset)
            offset += entry.size
            if entry.is_null:
                depth -= 1
                continue
            yield entry
            if entry.has_children:
                behind = 0 if whole else entry.behind_children()
                if behind > offset:
                    offset = behind
                else:
                    depth += 1


def _decoded(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
