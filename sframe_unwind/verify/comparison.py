"""The functions of a file, by SFrame and by DWARF CFI: at every address where either changes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from sframe_unwind.arch import Arch
from sframe_unwind.dwarf.cfi import CfiFunction
from sframe_unwind.dwarf.file import Cfi
from sframe_unwind.elf.section_addresses import Layout
from sframe_unwind.elf.symbols import Symbols
from sframe_unwind.errors import FormatError
from sframe_unwind.sframe import table
from sframe_unwind.sframe.constants import PcType
from sframe_unwind.sframe.section import Section
from sframe_unwind.unwind_rule import UnwindRule
from sframe_unwind.verify.reasons import reason
from sframe_unwind.verify.rules import Pair, Pairs
from sframe_unwind.verify.verdict import Disagreement, Function, Line, Outcome

Range = tuple[int, int]
"""Start and end address."""

_MIN_ROW_SIZE = 2
"""Bytes: a start address and the info byte."""
_MAX_LAYERS = 8
"""How many descriptions of one byte of code are plausible: linkers fold functions that are the same."""


class Comparison:
    """Compares a file; what was found stands in its attributes.

    :param layout: the terms of the file for addresses.
    :raises FormatError: SFrame or CFI is malformed.
    """

    def __init__(self, sections: list[Section], arch: Arch, cfi: Cfi, symbols: Symbols, layout: Layout) -> None:
        self._arch = arch
        self._cfi = cfi
        self._symbols = symbols
        self._layout = layout
        self._pairs = Pairs(cfi, arch)
        self._version = max(part.header.version for section in sections for part in section.tables)
        self.addresses_compared = 0
        self.disagreements: list[Disagreement] = []
        described = sorted(_described(sections), key=lambda function: function.start)
        code = sum(end - start for start, end in layout.code)
        _check_extent("SFrame", sum(function.fde.size for function in described), code)
        _check_extent("DWARF CFI", sum(end - start for start, end in cfi.ranges()), code)
        covered = merged((function.start, function.end) for function in described)
        functions = [(function.start, self._compare(function)) for function in described]
        functions += [(key[0], self._dwarf_only(key)) for key in cfi.ranges() if not overlap([key], covered)]
        self.functions = tuple(function for _, function in sorted(functions, key=lambda pair: pair[0]))
        self.not_described = code - overlap(layout.code, merged([*covered, *cfi.ranges()]))

    def _compare(self, function: table.Function) -> Function:
        key = function.start, function.end
        compared: list[tuple[int, Pair]] = []
        found = False
        for described in self._cfi.functions(*key):
            found = True
            compared += [
                (pc, self._pairs.pair(rule, described.row_at(pc), pc))
                for pc, rule in self._changes(function, described)
            ]
        self.addresses_compared += len(compared)
        if not found:
            return self._function(key, Outcome.SFRAME_ONLY, "no CFI")
        if not any(pair.differs for _, pair in compared):
            return self._function(key, Outcome.AGREES)
        lines = tuple(Line(self._layout.spot(pc), *pair) for pc, pair in compared)
        for (pc, pair), line in zip(compared, lines):
            for what in pair.differs:
                said, expected = getattr(pair.sframe, what), getattr(pair.dwarf, what)
                self.disagreements.append(Disagreement(line.spot, self._name(pc), what, said, expected))
        return self._function(key, Outcome.DISAGREES, lines=lines)

    def _changes(self, function: table.Function, described: CfiFunction) -> Iterator[tuple[int, UnwindRule]]:
        """Yield each address at which what either says changes, with SFrame's rule, where both say something."""
        low, high = max(function.start, described.start), min(function.end, described.end)
        starts, rules = _unrolled(function, low, high)
        for pc in sorted({low, *starts} | self._cfi.changes(described, low, high)):
            at = bisect_right(starts, pc) - 1
            if low <= pc < high and at >= 0 and (rule := rules[at]) is not None:
                yield pc, rule

    def _dwarf_only(self, key: Range) -> Function:
        why = reason(self._cfi, next(self._cfi.functions(*key)), self._arch, self._version)
        return self._function(key, Outcome.NOT_EXPRESSIBLE if why else Outcome.DWARF_ONLY, why)

    def _function(self, key: Range, outcome: Outcome, why: str = "", lines: tuple[Line, ...] = ()) -> Function:
        start, end = key
        return Function(self._layout.spot(start), end - start, self._name(start), outcome, why, lines)

    def _name(self, pc: int) -> str:
        found = self._symbols.find(pc)
        # A symbol without a size reaches to the next one, but not into another section.
        if found is None or self._layout.spot(found[0].address).section != self._layout.spot(pc).section:
            return ""
        return self._symbols.name(pc) or ""


def _check_extent(what: str, described: int, code: int) -> None:
    """Check that functions do not lie above each other by the thousand: each pair would have to be compared.

    :raises FormatError: they do.
    """
    if described > _MAX_LAYERS * code:
        raise FormatError(f"{what} describes functions of {described:#x} bytes in all, but there are {code:#x} of code")


def _described(sections: Iterable[Section]) -> Iterator[table.Function]:
    """Yield the functions that SFrame says something of.

    :raises FormatError: an entry is malformed, or they claim the same rows over and over: checking them would take
        time that grows with the square of the section.
    """
    for part in (part for section in sections for part in section.tables):
        rows = 0
        for function in part.functions():
            rows += function.fde.num_rows
            if rows * _MIN_ROW_SIZE > part.header.fre_size:
                raise FormatError(
                    f"function at {function.start:#x}: up to here there are {rows} rows, more than the FRE sub-section"
                    f" of {part.header.fre_size:#x} bytes can hold"
                )
            if function.fde.size and function.fde.num_rows:
                yield function


def _unrolled(function: table.Function, low: int, high: int) -> tuple[list[int], list[UnwindRule | None]]:
    """Return the addresses and rules of a function's rows, for a mask function those of each block in a range."""
    starts, rules = function.table.rows(function)
    if function.fde.pc_type is not PcType.MASK:
        return [function.start + start for start in starts], list(rules)
    size = function.fde.repetition_size
    first = low - (low - function.start) % size
    rows: list[tuple[int, UnwindRule | None]] = list(zip(starts, rules))
    if starts[0]:
        rows.insert(0, (0, None))
    unrolled = [(block + start, rule) for block in range(first, high, size) for start, rule in rows]
    return [start for start, _ in unrolled], [rule for _, rule in unrolled]


def merged(ranges: Iterable[Range]) -> list[Range]:
    """Return what ranges cover, in order and without overlaps."""
    result: list[Range] = []
    for start, end in sorted(ranges):
        if result and start <= result[-1][1]:
            result[-1] = result[-1][0], max(end, result[-1][1])
        else:
            result.append((start, end))
    return result


def overlap(ranges: Iterable[Range], covered: list[Range]) -> int:
    """Return how many bytes of ranges, none of which overlaps another, are covered.

    :param covered: in order and without overlaps.
    """
    total = 0
    for start, end in ranges:
        for low, high in covered[max(bisect_right(covered, (start,)) - 1, 0) : bisect_left(covered, (end,))]:
            total += max(min(end, high) - max(start, low), 0)
    return total
