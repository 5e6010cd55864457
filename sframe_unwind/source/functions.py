"""The functions of a unit, and the functions inlined into them (DWARF 5, 3.3.8)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Callable

from sframe_unwind.address import Range
from sframe_unwind.cfi.leb128 import read_uleb128
from sframe_unwind.errors import FormatError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.source import abbreviations as at_names
from sframe_unwind.source import forms
from sframe_unwind.source.sections import INFO
from sframe_unwind.source.units import Entry, Unit

_SUBPROGRAM, _INLINED = 0x2E, 0x1D
_OF_UNIT = frozenset((0x39, 0x1E))
"""Tags of entries in which compilers put functions: namespaces and modules."""
_OF_FUNCTION = frozenset((0x0B, 0x25, 0x32, _INLINED))
"""Tags of entries in which compilers put inlined calls: blocks, those of ``try`` and ``catch``, inlined calls."""
_ORIGINS = at_names.AT_ABSTRACT_ORIGIN, at_names.AT_SPECIFICATION
_DEPTH = 8
"""Maximum length of a chain of references from an entry to its name."""

FindUnit = Callable[[int], Unit]
"""``(offset)``: returns the unit that contains an offset of ``.debug_info``; raises FormatError if there is none."""


class Code(NamedTuple):
    """A function with code, or an inlined call."""

    unit: Unit
    entry: Entry
    ranges: list[Range]
    """Start and end address (exclusive) of each range; none is empty."""
    caller: Code | None
    """The code into which it is inlined; ``None``: it is a function."""

    @property
    def call(self) -> tuple[int, int]:
        """File number and line of the call; 0: not known."""
        return self.unit.number(self.entry, at_names.AT_CALL_FILE), self.unit.number(self.entry, at_names.AT_CALL_LINE)

    def name(self, find_unit: FindUnit) -> str:
        """Return the name, in its mangled form if that is known; empty: it has none.

        :raises SFrameError: the entry with the name cannot be read.
        """
        unit, entry = self.unit, self.entry
        for _ in range(_DEPTH):
            if found := unit.name(entry):
                return found
            origin = next(filter(None, (unit.reference(entry, name) for name in _ORIGINS)), None)
            if origin is None:
                break
            if not unit.offset <= origin < unit.end:
                unit = find_unit(origin)
            entry = unit.entry(origin - unit.offset)
        return ""


class UnitFunctions:
    """The functions of a unit; the inlined calls of a function are read when an address in it is looked up."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._functions: list[Code] | None = None
        self._all: list[Code] | None = None
        self._inlined: dict[int, list[Code]] = {}

    def chain(self, address: int) -> list[Code]:
        """Return the inlined calls at an address, from the innermost outward, followed by the function.

        :raises FormatError: the unit is malformed.
        :raises FileError: a section cannot be decompressed.
        """
        function = self._function(address)
        if function is None:
            return []
        at = function.entry.at
        if at not in self._inlined:
            self._inlined[at] = list(_inlined_into(function))
        found, chain = _smallest([function, *self._inlined[at]], address), []
        while found is not None:
            chain.append(found)
            found = found.caller
        return chain

    def _function(self, address: int) -> Code | None:
        if self._functions is None:
            self._functions = list(_functions(self._unit, _OF_UNIT))
        found = _smallest(self._functions, address)
        if found is None:
            if self._all is None:
                self._all = list(_functions(self._unit, None))  # those in other functions too
            found = _smallest(self._all, address)
        return found


def _smallest(codes: list[Code], address: int) -> Code | None:
    """Return the code with the smallest range that contains an address, as in addr2line; of several, the last one."""
    best, size = None, 0
    for code in codes:
        for start, end in code.ranges:
            if start <= address < end and (best is None or end - start <= size):
                best, size = code, end - start
    return best


def _functions(unit: Unit, through: frozenset[int] | None) -> Iterator[Code]:
    """Yield the functions of a unit.

    :param through: tags of the entries that can contain functions; ``None``: all.
    """
    for entry, _ in _below(unit, unit.top, _SUBPROGRAM, through):
        if entry.abbreviation.has_code and (ranges := unit.ranges_of(entry)):
            yield Code(unit, entry, ranges, None)


def _inlined_into(function: Code) -> Iterator[Code]:
    """Yield the inlined calls in a function, each after the one that contains it."""
    callers = [function]
    for entry, level in _below(function.unit, function.entry, _INLINED, _OF_FUNCTION):
        del callers[level + 1 :]
        callers.append(Code(function.unit, entry, function.unit.ranges_of(entry), callers[-1]))
        yield callers[-1]


def _below(unit: Unit, parent: Entry, tag: int, through: frozenset[int] | None) -> Iterator[tuple[Entry, int]]:
    """Yield the entries with a tag below an entry, in order, each with the number of such entries that contain it.

    Other entries are skipped without decoding their values; this is most of the work for a stack with lines.

    :param through: tags of the entries whose children are searched; ``None``: all.
    :raises FormatError: the unit is malformed.
    """
    if not parent.abbreviation.has_children:
        return
    data, order, known = unit.data, unit.encoding.byteorder, unit.abbreviations
    # The depth of the present list of children, and those of the lists that belong to entries with the tag.
    depth, around = 1, [0]
    ignored = 0
    """Depth of the entry whose children are skipped; 0: none."""
    try:
        at = forms.end_of(data, parent.values, parent.abbreviation.steps, order)
        while depth:
            start = at
            code = data[at]
            at += 1
            if code > 0x7F:
                code, at = read_uleb128(data, start)
            if not code:
                depth -= 1
                if depth == ignored:
                    ignored = 0
                if depth == around[-1]:
                    around.pop()
                continue
            abbreviation = known[code]
            entry_tag, has_children, steps, sibling_size, _ = abbreviation
            is_found = entry_tag == tag and not ignored
            if is_found:
                yield Entry(start, abbreviation, at), len(around) - 1
            for step in steps:
                if step < 0:
                    at = forms.end_of(data, at, (step,), order)
                else:
                    at += step
            if not has_children:
                continue
            if not ignored and through is not None and entry_tag not in through:
                sibling = int.from_bytes(data[at - sibling_size : at], order)
                if sibling > at:
                    at = sibling
                    continue
                ignored = depth
            if is_found:
                around.append(depth)
            depth += 1
    except (IndexError, ValueError) as error:
        raise FormatError("a unit ends within its entries", unit.offset, INFO) from error
