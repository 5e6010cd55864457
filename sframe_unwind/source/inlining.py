"""Functions of a unit, and those that were inlined into them (DWARF 5, 3.3.8)."""

from __future__ import annotations

from typing import Callable, NamedTuple

from sframe_unwind.errors import FormatError
from sframe_unwind.source import units
from sframe_unwind.source.forms import REFERENCE
from sframe_unwind.source.units import Unit

_SUBPROGRAM, _INLINED = 0x2E, 0x1D
_TYPES = (0x02, 0x04, 0x13, 0x15, 0x17, 0x01)
"""Classes, enumerations, structures, types of functions, unions, arrays: no code is in them."""
_WANTED = frozenset(
    (
        *(units.AT_LOW_PC, units.AT_HIGH_PC, units.AT_RANGES, units.AT_CALL_FILE, units.AT_CALL_LINE),
        *(units.AT_NAME, units.AT_LINKAGE_NAME, units.AT_MIPS_LINKAGE_NAME),
        *(units.AT_ABSTRACT_ORIGIN, units.AT_SPECIFICATION),
    )
)
_SIBLING = frozenset((units.AT_SIBLING,))


UnitWith = Callable[[int], Unit]
"""``(offset)``: returns the unit that contains an offset of ``.debug_info``."""


class Code(NamedTuple):
    """A function with code, or an inlined call."""

    ranges: tuple[tuple[int, int], ...]
    is_inlined: bool
    entry: int
    """Offset of its entry in the unit, in bytes."""
    call_file: int
    """Number of the file that has the call; 0: it is not inlined."""
    call_line: int


def functions(unit: Unit) -> list[Code]:
    """Return all functions and inlined calls of a unit in the order of their entries: an inlined call follows what it
    is in.

    :raises FormatError: the unit is malformed.
    """
    found: list[Code] = []
    top = unit.entry(unit.first)
    if top is None or not top.abbreviation.has_children:
        return found
    at, depth, end = unit.behind(top), 1, unit.end - unit.offset
    while depth and at < end:
        entry = unit.entry(at)
        if entry is None:
            at, depth = at + 1, depth - 1
            continue
        tag = entry.abbreviation.tag
        if tag in (_SUBPROGRAM, _INLINED):
            found += _code(unit, entry)
        at = unit.behind(entry)
        if entry.abbreviation.has_children:
            sibling = unit.attributes(entry, _SIBLING).get(units.AT_SIBLING) if tag in _TYPES else None
            if sibling is not None and sibling.number - unit.offset > at:
                at = sibling.number - unit.offset
            else:
                depth += 1
    return found


def _code(unit: Unit, entry: units.Entry) -> list[Code]:
    values = unit.attributes(entry, _WANTED)
    is_inlined = entry.abbreviation.tag == _INLINED
    # Of an inlined call that has nothing but the place where a statement begins, GCC writes an empty range.  GDB 16 and
    # later take it to be one byte.
    ranges = tuple((start, end + (start == end)) for start, end in unit.ranges_of(values) if is_inlined or start < end)
    if not ranges:
        return []
    file, line = (values.get(name) for name in (units.AT_CALL_FILE, units.AT_CALL_LINE))
    return [Code(ranges, is_inlined, entry.offset, file.number if file else 0, line.number if line else 0)]


class Names:
    """The names of functions, which can stand in other entries, also of other units.

    :param unit_with: finds the units of entries that others refer to.
    """

    _DEPTH = 8
    """How often an entry may refer to another."""

    def __init__(self, unit_with: UnitWith) -> None:
        self._unit_with = unit_with

    def name(self, unit: Unit, at: int) -> str:
        """Return the name of the function of an entry, mangled where that is known; empty: it has none.

        :raises FormatError: what it refers to is malformed.
        """
        plain = ""
        for _ in range(self._DEPTH):
            entry = unit.entry(at)
            if entry is None:
                break
            values = unit.attributes(entry, _WANTED)
            mangled = values.get(units.AT_LINKAGE_NAME) or values.get(units.AT_MIPS_LINKAGE_NAME)
            if mangled is not None and (text := unit.text(mangled)):
                return text
            plain = plain or unit.text(values.get(units.AT_NAME))
            origin = values.get(units.AT_ABSTRACT_ORIGIN) or values.get(units.AT_SPECIFICATION)
            if origin is None or origin.kind != REFERENCE:
                break
            if not unit.offset <= origin.number < unit.end:
                unit = self._unit_with(origin.number)
            at = origin.number - unit.offset
            if at < unit.first:
                raise FormatError("a reference to a unit's header", origin.number, units.INFO)
        return plain
