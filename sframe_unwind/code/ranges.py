"""Functions by address, as the tables that describe them delimit them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple


class CodeRange(NamedTuple):
    """What one entry of a table describes."""

    start: int
    """Address."""
    end: int


class CodeRanges:
    """Ranges that do not overlap, in order.

    :param ranges: of one start the longest counts; one that begins inside another is cut off it.
    """

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        longest: dict[int, int] = {}
        for start, end in ranges:
            if end > longest.get(start, start):
                longest[start] = end
        self.starts = sorted(longest)
        following = [*self.starts[1:], None]
        self._ends = [
            longest[start] if after is None else min(longest[start], after)
            for start, after in zip(self.starts, following)
        ]

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, number: int) -> CodeRange:
        return CodeRange(self.starts[number], self._ends[number])

    def find(self, address: int) -> CodeRange | None:
        """Return the range with an address."""
        at = bisect_right(self.starts, address) - 1
        if at < 0 or address >= self._ends[at]:
            return None
        return CodeRange(self.starts[at], self._ends[at])

    def before_next(self, address: int, size: int) -> CodeRange:
        """Return what follows an address that is in no range, up to the next range and a size in bytes."""
        at = bisect_right(self.starts, address)
        end = address + size
        return CodeRange(address, min(end, self.starts[at]) if at < len(self.starts) else end)
