"""Jump tables: where they lie, how a target is made of an entry, and how many entries there are."""

from __future__ import annotations

from typing import Callable, NamedTuple

from sframe_unwind.code.image import CodeImage

_MAX_ENTRIES = 2048
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

    def __getitem__(self, number: int) -> Entry:
        return self._entries[number]

    def number(self, entry: Entry) -> int:
        """Return the number of an entry."""
        found = self._numbers.get(entry)
        if found is None:
            found = self._numbers[entry] = len(self._entries)
            self._entries.append(entry)
        return found

    def tables(self) -> set[int]:
        """Return the addresses of all tables that were seen: none reaches into the next."""
        return {entry.table for entry in self._entries}


def targets(
    entry: Entry, bound: int | None, tables: set[int], image: CodeImage, is_target: Callable[[int], bool], end: int
) -> list[int]:
    """Return the targets of a jump by a table.

    :param bound: how many entries there are; ``None``: not known, so the table ends with what can be no target.
    :param tables: addresses of known tables, none of which reaches into the next.
    :param is_target: whether an address can be a target.
    :param end: address behind the function, where Clang has cases lead to that cannot be.
    """
    found: dict[int, None] = {}
    for index in range(min(_MAX_ENTRIES if bound is None else bound, _MAX_ENTRIES)):
        address = entry.table + index * entry.size
        raw = image.read(address, entry.size)
        if raw is None or (index and address in tables):
            break
        if entry.signed and raw >> (8 * entry.size - 1):
            raw -= 1 << 8 * entry.size
        target = (entry.base or 0) + (raw << entry.shift) & _MASK
        if target == end:
            continue
        if not is_target(target):
            break
        found[target] = None
    return list(found)
