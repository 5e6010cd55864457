"""The entries of ORC by address."""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import islice
from operator import ge

from sframe_unwind.address import ADDRESS_MASK, Range
from sframe_unwind.cfi.rules import Said
from sframe_unwind.errors import FormatError, counted
from sframe_unwind.orc.entry import NOTHING, SIZE, OrcEntry, OrcKind, OrcLayout, decode

_ADDRESS_SIZE = 4
"""Size of an address field in bytes; its value is relative to the field itself."""


class OrcTable:
    """The two sections of ORC.

    :param addresses: the contents of ``.orc_unwind_ip``, relocated.  Those of a module need not be sorted.
    :param start: address of that section.
    :param entries: the contents of ``.orc_unwind``.
    :param not_ends: code in which entries for the end of the stack have no meaning.
    :raises FormatError: the sections do not fit, or an entry is malformed.
    """

    def __init__(
        self, addresses: bytes, start: int, entries: bytes, layout: OrcLayout, not_ends: Range = (0, 0)
    ) -> None:
        count, rest = divmod(len(addresses), _ADDRESS_SIZE)
        if rest or len(entries) != count * SIZE:
            raise FormatError(
                f"ORC: {counted(len(addresses), 'byte')} of addresses and {len(entries)} of entries do not fit"
            )
        # A kernel has hundreds of thousands of entries, but only some hundred distinct ones.
        encoded = [entries[at : at + SIZE] for at in range(0, len(entries), SIZE)]
        self._decoded = {data: decode(data, layout) for data in set(encoded)}
        self._said = {data: entry.said for data, entry in self._decoded.items()}
        distances = struct.unpack(f"<{count}i", addresses)
        starts = [at + distance & ADDRESS_MASK for at, distance in zip(range(start, 1 << 65, _ADDRESS_SIZE), distances)]
        if any(map(ge, starts, islice(starts, 1, None))):
            # If one section ends where another begins, the entry for the end comes first, and the other one counts.
            defined = {data: entry.kind is not OrcKind.UNDEFINED for data, entry in self._decoded.items()}
            order = sorted(range(count), key=lambda number: (starts[number], defined[encoded[number]]))
            starts, encoded = [starts[number] for number in order], [encoded[number] for number in order]
        self._starts, self._encoded = array("Q", starts), encoded
        for at in range(bisect_left(starts, not_ends[0]), bisect_left(starts, not_ends[1])):
            if self._decoded[encoded[at]].kind is OrcKind.END:
                encoded[at] = NOTHING
        self._decoded[NOTHING] = decode(NOTHING, layout)
        self._said[NOTHING] = None

    def __len__(self) -> int:
        return len(self._encoded)

    def __iter__(self) -> Iterator[tuple[int, OrcEntry]]:
        """Yield address and entry, sorted by address."""
        return zip(self._starts, map(self._decoded.__getitem__, self._encoded))

    @property
    def start(self) -> int:
        """The first address that it describes; 0: none."""
        return self._starts[0] if self._starts else 0

    def find(self, pc: int) -> OrcEntry | None:
        """Return the entry for an address; ``None``: the address is before all entries."""
        at = bisect_right(self._starts, pc) - 1
        return self._decoded[self._encoded[at]] if at >= 0 else None

    def entries(self, start: int, end: int) -> Iterator[tuple[int, int, OrcEntry]]:
        """Yield the entries for a range of code: start and end of each in the range, and the entry."""
        first = max(bisect_right(self._starts, start) - 1, 0)
        last = bisect_left(self._starts, end)
        for at in range(first, last):
            low = max(self._starts[at], start)
            high = min(self._starts[at + 1], end) if at + 1 < last else end
            if low < high:
                yield low, high, self._decoded[self._encoded[at]]

    def rows(self, start: int, end: int) -> tuple[list[int], list[Said | None]]:
        """Return the rules for a range of code: the address from which on each holds, and the rule.

        ``None``: ORC has no rule there.
        """
        first = max(bisect_right(self._starts, start) - 1, 0)
        last = bisect_left(self._starts, end)
        starts: list[int] = []
        said: list[Said | None] = []
        for address, data in zip(self._starts[first:last], self._encoded[first:last]):
            rule = self._said[data]
            if starts and starts[-1] == max(address, start):
                said[-1] = rule
            else:
                starts.append(max(address, start))
                said.append(rule)
        return starts, said
