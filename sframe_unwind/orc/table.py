"""The entries of ORC by address."""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.cfi.rules import Said
from sframe_unwind.errors import FormatError
from sframe_unwind.orc.entry import SIZE, OrcEntry, OrcKind, OrcLayout, decode

_ADDRESS = struct.Struct("<i")
"""An address, relative to itself."""


class OrcTable:
    """Both sections of ORC.

    :param addresses: the contents of ``.orc_unwind_ip``, relocated.  Those of a module need not be sorted.
    :param start: address of that section.
    :param entries: the contents of ``.orc_unwind``.
    :raises FormatError: the sections do not fit, or an entry is malformed.
    """

    def __init__(self, addresses: bytes, start: int, entries: bytes, layout: OrcLayout) -> None:
        count, rest = divmod(len(addresses), _ADDRESS.size)
        if rest or len(entries) != count * SIZE:
            raise FormatError(f"ORC: {len(addresses)} bytes of addresses and {len(entries)} of entries do not fit")
        decoded: dict[bytes, OrcEntry] = {}
        found = []
        for number, (distance,) in enumerate(_ADDRESS.iter_unpack(addresses)):
            data = entries[number * SIZE : (number + 1) * SIZE]
            entry = decoded.get(data) or decoded.setdefault(data, decode(data, layout))
            found.append((start + number * _ADDRESS.size + distance & ADDRESS_MASK, entry))
        # Where a section ends at which another begins, the entry of the end comes first, and the other one counts.
        found.sort(key=lambda one: (one[0], one[1].kind is not OrcKind.UNDEFINED))
        self._starts = array("Q", (address for address, _ in found))
        self._entries = [entry for _, entry in found]
        said = {entry: entry.said for entry in decoded.values()}
        self._said = [said[entry] for entry in self._entries]

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[tuple[int, OrcEntry]]:
        """Yield address and entry, sorted by address."""
        return zip(self._starts, self._entries)

    def find(self, pc: int) -> OrcEntry | None:
        """Return the entry for an address; ``None``: it is before all."""
        at = bisect_right(self._starts, pc) - 1
        return self._entries[at] if at >= 0 else None

    def rows(self, start: int, end: int) -> tuple[list[int], list[Said | None]]:
        """Return the rules for a range of code: the address from which on each holds, and the rule.

        ``None``: ORC has nothing there.
        """
        first = max(bisect_right(self._starts, start) - 1, 0)
        last = bisect_left(self._starts, end)
        starts: list[int] = []
        said: list[Said | None] = []
        for address, rule in zip(self._starts[first:last], self._said[first:last]):
            if starts and starts[-1] == max(address, start):
                said[-1] = rule
            else:
                starts.append(max(address, start))
                said.append(rule)
        return starts, said
