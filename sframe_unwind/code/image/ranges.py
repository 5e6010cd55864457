"""Keeps the ranges of functions, as the tables delimit them, and sets of addresses, in few bytes."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

from sframe_unwind.named_tuple import NamedTuple


class CodeRange(NamedTuple):
    """The range of one entry of a table."""

    start: int
    """Start address."""
    end: int


class CodeRanges:
    """Ranges that do not overlap, in order.

    :param ranges: start and end address (exclusive) of each.  If several have the same start, the longest one counts.
        If a range begins inside another one, the other one ends there.
    """

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        starts, sizes = array("Q"), array("Q")
        for start, end in sorted(ranges):
            if starts and start == starts[-1]:
                sizes[-1] = max(sizes[-1], end - start)
            elif end > start:
                starts.append(start)
                sizes.append(end - start)
        for number, following in enumerate(starts[1:]):
            sizes[number] = min(sizes[number], following - starts[number])
        self.starts: Sequence[int] = starts
        self._sizes = sizes

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, number: int) -> CodeRange:
        start = self.starts[number]
        return tuple.__new__(CodeRange, (start, start + self._sizes[number]))  # half the time of calling the class

    def find(self, address: int) -> CodeRange | None:
        """Return the range that contains an address."""
        at = bisect_right(self.starts, address) - 1
        if at < 0:
            return None
        found = self[at]
        return found if address < found.end else None

    def before_next(self, address: int, size: int) -> CodeRange:
        """Return the range from an address to the next known range.

        :param address: an address that is in no range.
        :param size: maximum size of the result, in bytes.
        """
        at = bisect_right(self.starts, address)
        end = address + size
        return CodeRange(address, min(end, self.starts[at]) if at < len(self.starts) else end)


class Starts:
    """A set of ranges, by their starts; it takes one byte for each known range."""

    def __init__(self, ranges: CodeRanges) -> None:
        self._starts = ranges.starts
        self._has = bytearray(len(ranges))

    def add(self, start: int) -> None:
        """Add the range that starts at an address."""
        self._has[bisect_left(self._starts, start)] = 1

    def __contains__(self, start: int | None) -> bool:
        if start is None:
            return False
        at = bisect_left(self._starts, start)
        return at < len(self._has) and bool(self._has[at]) and self._starts[at] == start


class Addresses:
    """A set of addresses in few bytes."""

    def __init__(self, addresses: Iterable[int] = ()) -> None:
        self._sorted = array("Q", sorted(set(addresses)))

    def __contains__(self, address: int) -> bool:
        at = bisect_left(self._sorted, address)
        return at < len(self._sorted) and self._sorted[at] == address

    def __iter__(self) -> Iterator[int]:
        return iter(self._sorted)

    def __len__(self) -> int:
        return len(self._sorted)
