"""Jump tables: where they lie, how a target is made of an entry, and how many entries there are."""

from __future__ import annotations

from collections.abc import Collection
from typing import Callable, NamedTuple

from sframe_unwind.code.image import CodeImage

_MAX_ENTRIES = 1 << 16
"""The decoders of instruction sets in LLVM have tables with some 34,000."""
_MASK = (1 << 64) - 1


class Entry(NamedTuple):
    """How a jump's target is made of an entry of a table."""

    table: int
    """Address."""
    size: int
    """Of an entry, in bytes."""
    signed: bool
    shift: int = 0
    """In bits, to the left."""
    base: int | None = None
    """What is added; ``None``: the entry is the target."""


class Entries:
    """Numbers for entries, as an abstract value can hold them."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._numbers: dict[Entry, int] = {}
        self.tables: set[int] = set()
        """Addresses of the tables that were read since this was last emptied."""

    def __getitem__(self, number: int) -> Entry:
        return self._entries[number]

    def number(self, entry: Entry) -> int:
        """Return the number of an entry."""
        found = self._numbers.get(entry)
        if found is None:
            found = self._numbers[entry] = len(self._entries)
            self._entries.append(entry)
        self.tables.add(entry.table)
        return found


class Targets(NamedTuple):
    """Where a jump by a table may lead."""

    addresses: list[int]
    end: int
    """Address behind the last entry that was read."""
    certain: bool
    """Whether the table has as many entries as the jump's index has values."""


def targets(
    entry: Entry,
    bound: int | None,
    tables: Collection[int],
    image: CodeImage,
    is_target: Callable[[int], bool],
    end: int,
) -> Targets:
    """Return the targets of a jump by a table.

    :param bound: how many values the index has; ``None``: not known; the table ends where an entry cannot be a target.
    :param tables: addresses of known tables, none of which reaches into the next.
    :param is_target: whether an address can be a target.
    :param end: address behind the function, where Clang has cases lead to that cannot be.
    """
    found: dict[int, None] = {}
    limit = _MAX_ENTRIES if bound is None else min(bound, _MAX_ENTRIES)
    read = 0
    while read < limit:
        address = entry.table + read * entry.size
        raw = image.read(address, entry.size)
        if raw is None or (read and address in tables):
            break
        if entry.signed and raw >> (8 * entry.size - 1):
            raw -= 1 << 8 * entry.size
        target = (entry.base or 0) + (raw << entry.shift) & _MASK
        if target != end:
            if not is_target(target):
                break
            found[target] = None
        read += 1
    return Targets(list(found), entry.table + read * entry.size, read == bound)
