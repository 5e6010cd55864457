"""The tables that are judged, behind one interface: the rules for a range of code."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from sframe_unwind.code.judgement import RowRule
from sframe_unwind.code.ranges import CodeRange
from sframe_unwind.dwarf.cfi import Expression, Row
from sframe_unwind.dwarf.expression import UnsupportedExpressionError
from sframe_unwind.dwarf.file import Cfi
from sframe_unwind.sframe.constants import PcType
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import Function, Table


class Rows(NamedTuple):
    """The rules for some code: from each address to the next."""

    starts: list[int]
    rules: list[RowRule | None]
    """``None``: there is no row."""

    def at(self, pc: int) -> RowRule | None:
        """Return the rule for an address."""
        at = bisect_right(self.starts, pc) - 1
        return self.rules[at] if at >= 0 else None


NO_ROWS = Rows([], [])


class RuleTable(Protocol):
    """What SFrame or DWARF CFI says of a file's code."""

    def ranges(self) -> Iterable[tuple[int, int]]:
        """Yield start and end address of all that is described."""

    def rows(self, function: CodeRange) -> Rows:
        """Return the rules for a range of code.

        :raises FormatError: they are malformed.
        """

    def is_signal(self, function: CodeRange) -> bool:
        """Return whether a range is a signal trampoline, in which nothing is as a call leaves it."""


class SFrameRules:
    """The rules of SFrame sections."""

    def __init__(self, sections: list[Section]) -> None:
        self._functions: list[tuple[int, int, Table, int]] = []
        for section in sections:
            for table in section.tables:
                starts, sizes = table.extents()
                self._functions += [
                    (start, start + size, table, number) for number, (start, size) in enumerate(zip(starts, sizes)) if size
                ]
        self._functions.sort(key=lambda function: function[:2])
        self._starts = [function[0] for function in self._functions]

    def ranges(self) -> Iterable[tuple[int, int]]:
        """Yield start and end address of each function with rows."""
        return ((start, end) for start, end, _, _ in self._functions)

    def _find(self, function: CodeRange) -> Function | None:
        at = bisect_right(self._starts, function.start) - 1
        if at < 0 or self._functions[at][1] <= function.start:
            return None
        _, _, table, number = self._functions[at]
        return table.function(number)

    def rows(self, function: CodeRange) -> Rows:
        """Return the rules for a range of code."""
        found = self._find(function)
        if found is None or not found.fde.num_rows:
            return NO_ROWS
        starts, rules = found.table.rows(found)
        if found.fde.pc_type is not PcType.MASK:
            rows: Rows = Rows([found.start + start for start in starts], list(rules))
        else:
            rows = _unrolled(found, starts, list(rules), function)
        if found.end < function.end:
            rows = Rows([*rows.starts, found.end], [*rows.rules, None])
        return rows

    def is_signal(self, function: CodeRange) -> bool:
        """Return whether the function is marked as a signal trampoline."""
        found = self._find(function)
        return found is not None and found.fde.signal


def _unrolled(found: Function, starts: list[int], rules: list[RowRule | None], function: CodeRange) -> Rows:
    """Return the rules of a function whose rows repeat."""
    size = found.fde.repetition_size
    rows: list[tuple[int, RowRule | None]] = list(zip(starts, rules))
    if starts[0]:
        rows.insert(0, (0, None))
    first = function.start - (function.start - found.start) % size
    pairs = [(block + start, rule) for block in range(first, function.end, size) for start, rule in rows]
    return Rows([start for start, _ in pairs], [rule for _, rule in pairs])


class CfiRules:
    """The rules of DWARF CFI."""

    def __init__(self, cfi: Cfi) -> None:
        self._cfi = cfi
        self._known: dict[Row, RowRule] = {}

    def ranges(self) -> Iterable[tuple[int, int]]:
        """Yield start and end address of each FDE."""
        return self._cfi.ranges()

    def rows(self, function: CodeRange) -> Rows:
        """Return the rules for a range of code."""
        described = next(self._cfi.functions(*function), None)
        if described is None:
            return NO_ROWS
        changes = self._cfi.changes(described, function.start, function.end)
        starts = sorted(start for start in {described.start, *changes} if start < described.end)
        rules = [self._rule(described.row_at(start), start) for start in starts]
        return Rows([*starts, described.end], [*rules, None])

    def _rule(self, row: Row, pc: int) -> RowRule:
        known = self._known.get(row)
        if known is not None:
            return known
        try:
            rule: RowRule = self._cfi.rule(row, pc)
        except UnsupportedExpressionError as error:
            rule = f"computed: {error}"
        if not any(isinstance(source, Expression) for source in row):
            self._known[row] = rule
        return rule

    def is_signal(self, function: CodeRange) -> bool:
        """Return whether the augmentation marks a signal trampoline."""
        described = next(self._cfi.functions(*function), None)
        return described is not None and described.signal
