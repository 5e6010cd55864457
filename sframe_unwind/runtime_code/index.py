"""Finding what contains an address among ranges that may overlap."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate
from operator import itemgetter
from typing import Generic, TypeVar

Item = TypeVar("Item")


class RangeIndex(Generic[Item]):
    """Items by the addresses that they cover.

    :param ranges: start address, end address and item of each.
    """

    def __init__(self, ranges: Iterable[tuple[int, int, Item]]) -> None:
        self._ranges = sorted([entry for entry in ranges if entry[0] < entry[1]], key=itemgetter(0))
        self._starts = [start for start, _, _ in self._ranges]
        self._reach = list(accumulate((end for _, end, _ in self._ranges), max))
        """How far any of the ranges up to this one reaches."""

    def __len__(self) -> int:
        return len(self._ranges)

    def first(self, count: int) -> list[tuple[int, int, Item]]:
        """Return the first ranges in the order of their addresses."""
        return self._ranges[:count]

    def find(self, address: int) -> tuple[int, int, Item] | None:
        """Return the range that contains an address; of several the one that begins last."""
        at = bisect_right(self._starts, address) - 1
        while at >= 0 and address < self._reach[at]:
            found = self._ranges[at]
            if address < found[1]:
                return found
            at -= 1
        return None
