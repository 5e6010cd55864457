"""Addresses: their width, the address to look a frame's unwind data up by, and ranges of them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from operator import itemgetter
from typing import Generic, TypeVar

WORD_SIZE = 8
"""Size of an address and of a general register in bytes, on every ABI of the format."""

ADDRESS_MASK = (1 << 8 * WORD_SIZE) - 1
"""The bits of an address: sums and differences wrap around at 64 bits."""

PAGE_SIZE = 0x1000
"""The smallest page of the machines that SFrame is for, in bytes: images begin at a multiple of it."""


def page_start(address: int) -> int:
    """Return the address of the first byte of the page that contains an address."""
    return address & -PAGE_SIZE


def lookup_address(pc: int, interrupted: bool) -> int:
    """Return the address by which the unwind data of a frame is found.

    In a frame that made a call, pc is the return address.  It lies in the instruction behind the call, which can belong
    to another row, and behind a call that does not return even to another function; the call itself ends one byte
    before.  In an interrupted frame, pc is the instruction that has not run yet.

    :param pc: program counter of the frame.
    :param interrupted: whether the frame is the innermost one, or was interrupted by a signal.
    """
    return pc if interrupted else pc - 1


Item = TypeVar("Item")


class RangeMap(Generic[Item]):
    """Items by the ranges of addresses that they cover; ranges may overlap, and lie within each other.

    :param ranges: start address, address behind the end, and item of each range; empty ranges are left out.
    """

    def __init__(self, ranges: Iterable[tuple[int, int, Item]]) -> None:
        self._ranges = sorted((entry for entry in ranges if entry[0] < entry[1]), key=itemgetter(0))
        self._starts = [start for start, _, _ in self._ranges]
        self._reach = list(accumulate((end for _, end, _ in self._ranges), max))
        """The largest end address of all ranges up to this one: where the search for an outer range stops."""

    def __len__(self) -> int:
        return len(self._ranges)

    def __iter__(self) -> Iterator[tuple[int, int, Item]]:
        return iter(self._ranges)

    def find(self, address: int) -> tuple[int, int, Item] | None:
        """Return the range that contains an address, of several the one that begins last; ``None`` where none does."""
        at = bisect_right(self._starts, address) - 1
        while at >= 0 and address < self._reach[at]:
            found = self._ranges[at]
            if address < found[1]:
                return found
            at -= 1
        return None

    def get(self, address: int) -> Item | None:
        """Return the item of :meth:`find`."""
        found = self.find(address)
        return None if found is None else found[2]

    def overlapping(self, start: int, end: int) -> list[tuple[int, int, Item]]:
        """Return the ranges that share an address with the range from ``start`` to before ``end``, by start address."""
        found = []
        at = bisect_left(self._starts, end) - 1
        while at >= 0 and start < self._reach[at]:
            if start < self._ranges[at][1]:
                found.append(self._ranges[at])
            at -= 1
        return found[::-1]
