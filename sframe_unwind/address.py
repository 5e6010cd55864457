"""Addresses: size and byte order, the lookup address of a frame, ranges; :class:`RangeMap` finds items by address."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import accumulate
from operator import add, gt, itemgetter, sub
from typing import Any, Generic, Literal, TypeVar

WORD_SIZE = 8
"""Size of an address and of a general register, in bytes.  It is 8 in every ABI that the format supports."""

ByteOrder = Literal["little", "big"]
BYTE_ORDERS: tuple[ByteOrder, ...] = ("little", "big")

ADDRESS_MASK = (1 << 8 * WORD_SIZE) - 1
"""The bits of an address.  Address arithmetic wraps around at 64 bits."""

KERNEL_HALF = 1 << 63
"""Addresses from here on are the kernel's on the machines where kernel and user space share an address space."""

PAGE_SIZE = 0x1000
"""Smallest page size of the supported machines, in bytes.  An image begins at a multiple of it."""


def page_start(address: int) -> int:
    """Return the address of the first byte of the page that contains ``address``."""
    return address & -PAGE_SIZE


def lookup_address(pc: int, interrupted: bool) -> int:
    """Return the address at which to look up the unwind data of a frame.

    In a frame that made a call, pc is the return address: the address of the instruction after the call.  That
    instruction may belong to another row, and after a call that does not return, to another function.  The last byte
    of the call instruction is at pc minus 1, so the lookup uses that address.  In an interrupted frame, pc is the
    address of the next instruction to execute, and the lookup uses pc itself.

    :param pc: program counter of the frame.
    :param interrupted: the frame is the innermost one, or a signal interrupted it; pc is not a return address.
    """
    return pc if interrupted else pc - 1


Range = tuple[int, int]
"""Start and end address (exclusive)."""


def merged(ranges: Iterable[Range]) -> list[Range]:
    """Return the union of ranges, in order and without overlaps."""
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
        for low, high in _reaching_into(start, end, covered):
            total += max(min(end, high) - max(start, low), 0)
    return total


def gaps(whole: Range, covered: list[Range]) -> list[Range]:
    """Return the parts of a range that are not covered, in order.

    :param covered: in order and without overlaps.
    """
    start, end = whole
    found = []
    for low, high in _reaching_into(start, end, covered):
        if high <= start:
            continue
        if start < low:
            found.append((start, low))
        start = high
    return [*found, (start, end)] if start < end else found


def _reaching_into(start: int, end: int, covered: list[Range]) -> list[Range]:
    return covered[max(bisect_right(covered, (start,)) - 1, 0) : bisect_left(covered, (end,))]


Extent = TypeVar("Extent", bound="tuple[Any, ...]")

_BEYOND = 1 << 65
"""Larger than the end address of any range."""


def find_range(ranges: Sequence[Extent], address: int) -> Extent | None:
    """Return the range that contains an address, or ``None``.

    :param ranges: tuples that begin with start and end address (exclusive), in order and without overlaps.
    """
    at = bisect_right(ranges, (address, _BEYOND)) - 1
    return ranges[at] if at >= 0 and address < ranges[at][1] else None


Item = TypeVar("Item")


class RangeMap(Generic[Item]):
    """A map from address ranges to items.  Ranges may overlap and may be nested.

    :param ranges: start address, end address (exclusive) and item of each range.  Empty ranges are ignored.
    """

    def __init__(self, ranges: Iterable[tuple[int, int, Item]]) -> None:
        self._ranges = sorted((entry for entry in ranges if entry[0] < entry[1]), key=itemgetter(0))
        self._starts = [start for start, _, _ in self._ranges]
        self._ends = [end for _, end, _ in self._ranges]
        self._reach = list(accumulate(self._ends, max))
        """The largest end address of the ranges up to each index; the search for an enclosing range stops by it."""

    def add(self, ranges: Iterable[tuple[int, int, Item]]) -> None:
        """Add a few ranges: this costs less than a new map.

        :param ranges: as for a new map.
        """
        for entry in ranges:
            start, end, _ = entry
            if start < end:
                at = bisect_right(self._starts, start)
                self._ranges.insert(at, entry)
                self._starts.insert(at, start)
                self._ends.insert(at, end)
        self._reach = list(accumulate(self._ends, max))

    def remove(self, items: Container[Item]) -> None:
        """Remove all ranges of some items."""
        self._ranges = [entry for entry in self._ranges if entry[2] not in items]
        self._starts = [start for start, _, _ in self._ranges]
        self._ends = [end for _, end, _ in self._ranges]
        self._reach = list(accumulate(self._ends, max))

    def __len__(self) -> int:
        return len(self._ranges)

    def __iter__(self) -> Iterator[tuple[int, int, Item]]:
        return iter(self._ranges)

    def find(self, address: int) -> tuple[int, int, Item] | None:
        """Return the range that contains ``address``, or ``None``.  Of several, return the one that starts last."""
        at = bisect_right(self._starts, address) - 1
        while at >= 0 and address < self._reach[at]:
            found = self._ranges[at]
            if address < found[1]:
                return found
            at -= 1
        return None

    def contains(self, address: int) -> bool:
        """Return whether a range contains ``address``."""
        return self.find(address) is not None

    def get(self, address: int) -> Item | None:
        """Return the item of the range that :meth:`find` returns, or ``None``."""
        found = self.find(address)
        return None if found is None else found[2]

    def overlapping(self, start: int, end: int) -> list[tuple[int, int, Item]]:
        """Return the ranges that overlap ``[start, end)``, sorted by start address."""
        found = []
        at = bisect_left(self._starts, end) - 1
        while at >= 0 and start < self._reach[at]:
            if start < self._ranges[at][1]:
                found.append(self._ranges[at])
            at -= 1
        return found[::-1]


class Extents:
    """Ranges that may overlap, in a few bytes each: a file of 100 MB has 100,000 functions.

    They are numbered by start address; ranges with the same start keep their order.
    """

    def __init__(self, ranges: Iterable[Range]) -> None:
        starts, sizes = array("Q"), array("Q")
        for start, end in ranges:
            starts.append(start)
            sizes.append(end - start)
        self.order: Sequence[int] = range(len(starts))
        """Maps the number of a range to its index among the given ranges."""
        if any(map(gt, starts, starts[1:])):
            self.order = array("Q", sorted(self.order, key=starts.__getitem__))
            starts = array("Q", map(starts.__getitem__, self.order))
            sizes = array("Q", map(sizes.__getitem__, self.order))
        self.starts: Sequence[int] = starts
        self.sizes: Sequence[int] = sizes
        self._reach = array("Q", map(sub, accumulate(map(add, starts, sizes), max), starts))
        """For each number, the distance by which the ranges up to it reach beyond its start, in bytes."""

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, number: int) -> Range:
        start = self.starts[number]
        return start, start + self.sizes[number]

    def __iter__(self) -> Iterator[Range]:
        return zip(self.starts, map(add, self.starts, self.sizes))

    def overlapping(self, start: int, end: int) -> list[int]:
        """Return the numbers of the ranges that overlap ``[start, end)``, ascending."""
        found = []
        at = bisect_left(self.starts, end) - 1
        while at >= 0 and start < self.starts[at] + self._reach[at]:
            if start < self.starts[at] + self.sizes[at]:
                found.append(at)
            at -= 1
        return found[::-1]
