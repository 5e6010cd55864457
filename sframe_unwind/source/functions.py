"""Functions of a unit, and those that were inlined into them (DWARF 5, 3.3.8)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from elftools.dwarf.die import DIE
from elftools.dwarf.ranges import BaseAddressEntry

from sframe_unwind.errors import FormatError

_SUBPROGRAM, _INLINED = "DW_TAG_subprogram", "DW_TAG_inlined_subroutine"
_SIBLING = "DW_AT_sibling"
_LOCAL = ("DW_FORM_ref1", "DW_FORM_ref2", "DW_FORM_ref4", "DW_FORM_ref8", "DW_FORM_ref_udata")
"""Forms of a reference within a unit."""
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

    def __init__(self, entry: DIE, ranges: list[tuple[int, int]]) -> None:
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
                if mangled in entry.attributes:
                    return _text(entry, mangled)
            plain = plain or _text(entry, "DW_AT_name")
            origin = next((name for name in _ORIGINS if name in entry.attributes), None)
            if origin is None:
                break
            entry = entry.get_DIE_from_attribute(origin)
        return plain

    @property
    def call_file(self) -> int:
        """Number of the file that has the call; 0: it is not inlined."""
        return _number(self.entry, "DW_AT_call_file")

    @property
    def call_line(self) -> int:
        """Line of the call; 0: it is not inlined."""
        return _number(self.entry, "DW_AT_call_line")


class UnitFunctions:
    """The functions of a unit, each with what is inlined into it read when an address lies in it."""

    def __init__(self, unit: Any) -> None:
        self._unit = unit
        self._left = _MAX_ENTRIES
        self._inlined: dict[int, list[Code]] = {}

    def chain(self, address: int) -> list[Code]:
        """Return the function that an address is in, and then the inlined calls, from the outermost inward.

        :raises FormatError: the unit has too many entries.
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
        return list(self._code(self._unit.get_top_DIE(), _SUBPROGRAM))

    def _code(self, parent: DIE, tag: str) -> Iterator[Code]:
        """Yield what has code and a tag, below an entry; an inlined call follows what it is in."""
        for entry in self._below(parent, whole=tag == _INLINED):
            if entry.tag != tag:
                continue
            ranges = ranges_of(entry)
            if tag == _INLINED:
                # Of an inlined call that has nothing but the place where a statement begins, GCC lists an empty range.
                # GDB 16 and later take it to be one byte.
                ranges = [(start, end + (start == end)) for start, end in ranges]
            if ranges:
                yield Code(entry, ranges)

    def _below(self, parent: DIE, whole: bool) -> Iterator[DIE]:
        """Yield the entries below one in their order.

        pyelftools' own iterators follow a sibling that lies before its entry for ever.

        :param whole: ``False``: but not those below functions and types that say where they end.
        """
        if not parent.has_children:
            return
        offset, depth = parent.offset + parent.size, 1
        while depth:
            if not self._left:
                raise FormatError(f"more than {_MAX_ENTRIES:,} entries in a unit", self._unit.cu_offset, ".debug_info")
            self._left -= 1
            entry = DIE(self._unit, parent.stream, offset)
            offset += entry.size
            if entry.is_null():
                depth -= 1
                continue
            yield entry
            if entry.has_children:
                behind = 0 if whole else _sibling(entry)
                if behind > offset:
                    offset = behind
                else:
                    depth += 1


def ranges_of(entry: DIE) -> list[tuple[int, int]]:
    """Return start and end address (exclusive) of the code of an entry, listed empty ranges included."""
    low, high = (entry.attributes.get(name) for name in ("DW_AT_low_pc", "DW_AT_high_pc"))
    if "DW_AT_ranges" in entry.attributes:
        return list(_listed(entry, entry.attributes["DW_AT_ranges"].value))
    if low is None or high is None:
        return []
    end = high.value if high.form.startswith("DW_FORM_addr") else low.value + high.value
    return [(low.value, end)] if low.value < end else []


def _listed(entry: DIE, offset: int) -> Iterator[tuple[int, int]]:
    base = _number(entry.cu.get_top_DIE(), "DW_AT_low_pc")
    for one in entry.dwarfinfo.range_lists().get_range_list_at_offset(offset, entry.cu):
        if isinstance(one, BaseAddressEntry):
            base = one.base_address
        elif one.is_absolute:
            yield one.begin_offset, one.end_offset
        else:
            yield base + one.begin_offset, base + one.end_offset


def _sibling(entry: DIE) -> int:
    """Return the offset behind the children of an entry, 0 where it does not say."""
    sibling = entry.attributes.get(_SIBLING)
    return entry.cu.cu_offset + sibling.raw_value if sibling is not None and sibling.form in _LOCAL else 0


def _number(entry: DIE, name: str) -> int:
    found = entry.attributes.get(name)
    return found.value if found is not None and isinstance(found.value, int) else 0


def _text(entry: DIE, name: str) -> str:
    found = entry.attributes.get(name)
    return found.value.decode("utf-8", "backslashreplace") if found is not None else ""
