"""The common interface of the tables that are judged: the rules for a range of code."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Protocol

from sframe_unwind.code.image.ranges import CodeRange
from sframe_unwind.code.judge.judgement import RowRule
from sframe_unwind.named_tuple import NamedTuple


class Rows(NamedTuple):
    """The rules for some code: each applies from its address to the next one."""

    starts: list[int]
    """Start addresses, ascending."""
    rules: list[RowRule | None]
    """``None``: there is no row."""

    def at(self, pc: int) -> RowRule | None:
        """Return the rule for an address; ``None``: there is none."""
        at = bisect_right(self.starts, pc) - 1
        return self.rules[at] if at >= 0 else None


NO_ROWS = Rows([], [])


class RuleTable(Protocol):
    """The rules of SFrame, DWARF CFI or ORC for a file's code."""

    def ranges(self) -> Iterable[tuple[int, int]]:
        """Return start and end address of each described range of code, mostly a function."""

    def rows(self, function: CodeRange) -> Rows:
        """Return the rules for a range of code."""

    def is_signal(self, function: CodeRange) -> bool:
        """Return whether a range is a signal trampoline, which is entered with another state than a function."""
