"""Ranges of addresses in a frame."""

from __future__ import annotations

from sframe_unwind.named_tuple import NamedTuple

MOST_OBJECTS = 24
"""Maximum number of objects that are kept apart."""
_OBJECT, _NEAR = 64, 64
"""Sizes in bytes.  A range of at least the first size is taken for that of a pointer that moves within an object, each
time by at most the second size."""


class Range(NamedTuple):
    """Addresses from one to another, both included, as offsets in bytes from a stack pointer."""

    base: int
    first: int
    last: int
    by_index: bool = False
    """Whether an index was added: a load may then give any word of the object at the address."""
    is_signless: bool = False
    """Whether the value may also be a number minus the address: a distance from it, or its negation."""

    def moved(self, first: int, last: int) -> Range:
        """Return the addresses plus a number of bytes between two limits, which may also be subtracted."""
        if self.is_signless:
            most = max(abs(first), abs(last))
            first, last = -most, most
        return self._replace(first=self.first + first, last=self.last + last)


Reach = tuple[Range, ...]
NOTHING: Reach = ()
"""No address in the frame, as far as is known."""


def indexed(reach: Reach) -> Reach:
    """Return the reach of addresses after an index was added."""
    return tuple(one._replace(by_index=True) for one in reach)


def signless(reach: Reach | None) -> Reach | None:
    """Return the reach of addresses, or of numbers minus them."""
    return None if reach is None else tuple(one._replace(is_signless=True) for one in reach)


def is_within(mine: Reach, other: Reach) -> bool:
    """Return whether a new reach is that of a pointer that has moved within the known ranges, or a little further."""
    return all(
        any(
            one.base == new.base
            and one.is_signless >= new.is_signless
            and one.last - one.first >= _OBJECT
            and one.first - _NEAR <= new.first <= new.last <= one.last + _NEAR
            for one in mine
        )
        for new in other
    )


def hulls(reach: Reach) -> Reach:
    """Return fewer ranges that contain all of some: those of one object become one, or else those of one base."""
    found: list[Range] = []
    for one in reach:
        if found and found[-1].base == one.base and one.first - found[-1].last <= _OBJECT:
            found[-1] = _hull(found[-1], one)
        else:
            found.append(one)
    if len(found) <= MOST_OBJECTS:
        return tuple(found)
    hulls: dict[int, Range] = {}
    for one in found:
        hulls[one.base] = _hull(hulls.get(one.base, one), one)
    return tuple(hulls.values())


def _hull(one: Range, other: Range) -> Range:
    """Return the range that contains two ranges with the same base."""
    return Range(
        one.base,
        min(one.first, other.first),
        max(one.last, other.last),
        one.by_index or other.by_index,
        one.is_signless or other.is_signless,
    )


def is_next_round(mine: Reach, other: Reach) -> bool:
    """Return whether a new reach is the known one after it moved by the distance between two of its ranges."""
    by = other[0].first - mine[0].first
    if any(one.is_signless for one in other):
        return False
    places, others = [one[:3] for one in mine], [one[:3] for one in other]
    moved = [(base, first + by, last + by) for base, first, last in places]
    return others == moved and not set(places).isdisjoint(others)


def union(mine: Reach, other: Reach) -> Reach:
    """Return all ranges of two reaches, those that are the same place once."""
    found: dict[tuple[int, int, int], Range] = {}
    for one in (*mine, *other):
        place = one[:3]
        known = found.get(place, one)
        if known[3:] != one[3:]:
            known = Range(*place, one.by_index or known.by_index, one.is_signless or known.is_signless)
        found[place] = known
    return tuple(sorted(found.values()))
