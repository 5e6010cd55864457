"""Jump tables: their places, the computation of a target from an entry, and the number of entries."""

from __future__ import annotations

from collections.abc import Collection
from typing import Callable

from sframe_unwind.code.image.code_image import CodeImage
from sframe_unwind.named_tuple import NamedTuple

_MAX_ENTRIES = 1 << 16
"""Maximum number of entries of a table.  LLVM's decoders of instruction sets have tables with some 34,000."""
_MASK = (1 << 64) - 1


class Entry(NamedTuple):
    """The computation of a jump's target from an entry of a table."""

    table: int
    """Address of the table."""
    size: int
    """Size of an entry, in bytes."""
    signed: bool
    shift: int = 0
    """Number of bits by which the entry is shifted to the left."""
    base: int | None = None
    """The number to add; ``None``: the entry is the target."""


class Entries:
    """Numbers that stand for entries, for use in abstract values."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._numbers: dict[Entry, int] = {}
        self.tables: set[int] = set()
        """Addresses of the tables that were read since this was last cleared."""

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
    """The possible targets of a jump by a table."""

    addresses: list[int]
    end: int
    """Address after the last entry that was read."""
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

    :param bound: number of values of the index; ``None``: not known; the table ends where an entry cannot be a target.
    :param tables: addresses of known tables, none of which overlaps the next.
    :param is_target: whether an address can be a target.
    :param end: address after the function, to which Clang makes impossible cases lead.
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
