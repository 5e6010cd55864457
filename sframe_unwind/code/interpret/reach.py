"""Finds the slots that a store through an address may overwrite if the address is not exactly known.

If paths with two addresses in the frame meet, or an index is added to one, the abstract value keeps a *reach*: the
ranges in which the address may lie.  An index is assumed to stay in the object at the address to which it is added.  A
pointer that moves by the same distance in each round of a loop is assumed to stay in its object, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Callable

from sframe_unwind.code.interpret.frame_ranges import (
    MOST_OBJECTS,
    NOTHING,
    Range,
    Reach,
    hulls,
    indexed,
    is_next_round,
    is_within,
    signless,
    union,
)
from sframe_unwind.code.interpret.values import (
    ALTERED_BASE,
    CFA,
    CLOBBERED_BASE,
    NUMBER,
    OTHER,
    OTHER_BASE,
    REACH_SHIFT,
    STACK_BASE,
    SYMBOL,
    UNKNOWN,
    UNKNOWN_BASE,
    Slot,
    Value,
    on_stack,
    plus,
    top_number,
    with_top_number,
)

_WORD, _HALF_WORD = 8, 4
_MOST_RANGES = 8
"""Maximum number of ranges that are kept apart: of more, those of one object become one."""
_BYTE = 255
"""The greatest number in a byte."""
_REACHING = (STACK_BASE, UNKNOWN_BASE, ALTERED_BASE)
_NO_ADDRESSES = frozenset((OTHER_BASE, NUMBER, CLOBBERED_BASE))
IsSaved = Callable[[Value], bool]
"""Returns whether a value in a slot is that of a saved register."""
EVERYWHERE = 1
"""The number of the reach that is all of the frame."""
ANYWHERE: Value = (UNKNOWN_BASE, EVERYWHERE << REACH_SHIFT)
"""A value of which nothing is known; it may be any address in the frame."""


class Reaches:
    """The reaches of one file's values, by their numbers."""

    def __init__(self) -> None:
        self._known: list[Reach | None] = [NOTHING, None]
        self._numbers: dict[Reach, int] = {NOTHING: 0}
        self._shifted: dict[int, tuple[Value, int]] = {}
        """The addresses that were shifted right, and by how many bits, by the number of the result's reach."""
        self._shifts: dict[tuple[Value, int], int] = {}
        self._exchanged: set[tuple[int, int, int]] = set()
        """The places of addresses whose lowest byte was exchanged."""
        self.unbounded: set[int] = set()
        """The bases that name stack pointers of which it is not known that something was allocated by them."""

    def of(self, value: Value) -> Reach | None:
        """Return the ranges in which an address may lie; ``None``: anywhere in the frame."""
        base, offset = value
        if on_stack(base):
            return (tuple.__new__(Range, (base, offset, offset, False, False)),)  # half the time of calling the class
        return self._known[offset >> REACH_SHIFT if base in _REACHING else 0]

    def with_reach(self, base: int, reach: Reach | None) -> Value:
        """Return a value without an upper bound, by its base and its reach."""
        if reach is None or len(reach) > MOST_OBJECTS:
            return base, EVERYWHERE << REACH_SHIFT
        number = self._numbers.get(reach)
        if number is None:
            number = self._numbers[reach] = len(self._known)
            self._known.append(reach)
        return base, number << REACH_SHIFT

    def shifted(self, address: Value, bits: int) -> Value:
        """Return an address after a shift to the right, from which a shift to the left gets it back, aligned.

        Code rounds addresses in this way.  Anything else that is computed from the result may be any address.
        """
        if address[0] in _REACHING:
            address = with_top_number(address, 0)
        number = self._shifts.get((address, bits))
        if number is None:
            number = self._shifts[address, bits] = len(self._known)
            self._known.append(None)
            self._shifted[number] = address, bits
        return UNKNOWN_BASE, number << REACH_SHIFT

    def before_shift(self, value: Value, bits: int) -> Value | None:
        """Return the address that was shifted right by so many bits; ``None``: the value is no such result."""
        address, shifted_by = self._shifted.get(value[1] >> REACH_SHIFT if has_reach(value) else 0, (UNKNOWN, -1))
        return address if shifted_by == bits else None

    def with_other_lowest_byte(self, value: Value) -> Value:
        """Return an address in the frame after its lowest byte was exchanged in memory.

        The result is less than 256 bytes away, also if the byte is exchanged again.  Compilers put a byte where an
        address was that is not used any more.
        """
        found = NOTHING
        for one in self.of(value) or (None,):
            if one is not None and one[:3] not in self._exchanged:
                one = one.moved(-_BYTE, _BYTE) if one.first == one.last else None
            if one is None:
                return ANYWHERE  # with wider and wider ranges, a loop would have no end
            self._exchanged.add(one[:3])
            found = union(found, (one,))
        return self.with_reach(UNKNOWN_BASE, found)

    def is_anywhere(self, value: Value) -> bool:
        """Return whether a value was computed from an address in the frame, and which one is not known."""
        return has_reach(value) and (value[1] == ANYWHERE[1] or value[1] >> REACH_SHIFT in self._shifted)

    def merged(self, base: int, left: Value, right: Value) -> Value:
        """Return a value that stands for one of two values.

        :param base: the base of the result.

        :param left: the value that is known so far; it stays if the other is that of the next round of a loop.
        """
        mine, other = self.of(left), self.of(right)
        if mine is None or other is None:
            return self.with_reach(base, None)
        if not other:
            return self.with_reach(base, mine)
        if (len(mine) > 1 and is_next_round(mine, other)) or is_within(mine, other):
            return self.with_reach(base, indexed(mine))
        found = union(mine, other)
        return self.with_reach(base, found if len(found) <= _MOST_RANGES else hulls(found))

    def near(self, base: int, *reaches: Reach | None) -> Value:
        """Return a value that stays in one of several objects, by its base and their reaches."""
        found = NOTHING
        for reach in reaches:
            if reach is None:
                return self.with_reach(base, None)
            found = union(found, indexed(reach)) if found else indexed(reach)
        return self.with_reach(base, found if len(found) <= _MOST_RANGES else hulls(found))

    def moved(self, value: Value, first: int, last: int) -> Value:
        """Return a value plus a number of bytes that lies between two limits, without its upper bound."""
        reach = self.of(value)
        if reach is not None:
            reach = tuple(one.moved(first, last) for one in reach)
        return self.with_reach(value[0], reach)

    def distance(self, left: Value, right: Value) -> Value:
        """Return a value minus an address, which is found again where the result is subtracted.

        :param left: no constant, and no address in the frame that is known to be one.
        """
        return self.near(UNKNOWN_BASE, self.of(left), signless(self.of(right)))

    def computed(self, *values: Value) -> Value:
        """Return a value that was computed from some values, of which one may be an address in the frame.

        It may be a multiple of the address, so that the address is found again where it is subtracted.
        """
        return self.near(UNKNOWN_BASE, *(signless(self.of(value)) for value in values))

    def is_signless(self, value: Value) -> bool:
        """Return whether a value is a distance from an address in the frame, or the negation of one."""
        reach = self.of(value) if has_reach(value) else None
        return bool(reach) and all(one.is_signless for one in reach or ())

    def without(self, base: int, value: Value) -> Value:
        """Return the remaining knowledge about a value when a base begins to name another stack pointer.

        What was allocated by that stack pointer stays apart from the rest of the frame.
        """
        if value[0] == base:
            return UNKNOWN
        if has_reach(value) and value[1] >> REACH_SHIFT in self._shifted:
            address, _ = self._shifted[value[1] >> REACH_SHIFT]
            return value if self.without(base, address) == address else ANYWHERE
        reach = self.of(value) if has_reach(value) else None
        if reach is None or all(known.base != base for known in reach):
            return value
        return self.with_reach(value[0], tuple(known for known in reach if known.base != base))

    def substituted(self, base: int, known: Value, value: Value) -> Value:
        """Return a value after a base turned out to be the name of a known address."""
        if value[0] == base:
            return plus(known, value[1])
        if self.without(base, value) == value:
            return value
        reach = self.of(value)
        if reach is None:
            return ANYWHERE
        moved = (one._replace(base=known[0]).moved(known[1], known[1]) if one.base == base else one for one in reach)
        return with_top_number(self.with_reach(value[0], tuple(sorted(moved))), top_number(value))

    def overlaps(self, value: Value, size: int, slot: Slot) -> bool:
        """Return whether a store of so many bytes at an address may overwrite a slot.

        An address by a stack pointer that moved down by a variable amount is assumed to stay in what was allocated.
        """
        reach = self.of(value)
        return reach is None or any(self._overlaps(one, size, slot) for one in reach)

    def _overlaps(self, one: Range, size: int, slot: Slot) -> bool:
        """Return whether so many bytes at some address in a range may overlap a slot."""
        return one.base in self.unbounded if one.base != slot[0] else one.first - _WORD < slot[1] < one.last + size

    def overwritten(self, value: Value, size: int, slots: Mapping[Slot, Value], is_saved: IsSaved) -> list[Slot]:
        """Return the slots that a store of so many bytes at an address may overwrite.

        By an index that is added to the address of a saved register, also those of the saved registers next to it.
        """
        found = [slot for slot in slots if self.overlaps(value, size, slot)]
        if not any(one.by_index for one in self.of(value) or ()):
            return found
        waiting = [slot for slot in found if is_saved(slots[slot])]
        while waiting:
            base, offset = waiting.pop()
            beside = [slot for slot in ((base, offset - _WORD), (base, offset + _WORD)) if slot not in found]
            more = [slot for slot in beside if is_saved(slots.get(slot, OTHER))]
            found, waiting = found + more, waiting + more
        return found

    def may_load(self, value: Value, slots: Mapping[Slot, Value], is_saved: IsSaved) -> list[Value]:
        """Return the values that a load of a word at an address may give.

        By an index, it may be from any slot of the object at the address: of the slots that follow each other there,
        up to a saved register.  How far the object goes beyond a slot without a value of interest is not known: an
        address of a saved register may also be from there, up to the next saved register.
        """
        reach = self.of(value)
        if reach is None:
            return list(slots.values())
        objects = [_object(one, slots, is_saved) for one in reach]
        found = [held for slot, held in slots.items() if any(self._overlaps(one, _WORD, slot) for one in objects)]
        beyond = self._leading_to_saved(slots, is_saved) if any(one.by_index for one in reach) else []
        return found + [
            slots[slot] for slot in beyond if any(_is_before_saved(one, slot, slots, is_saved) for one in reach)
        ]

    def _leading_to_saved(self, slots: Mapping[Slot, Value], is_saved: IsSaved) -> list[Slot]:
        """Return the slots that hold an address of a saved register, as far as is known."""
        known = [(slot, held) for slot, held in slots.items() if on_stack(held[0]) or self.is_limited(held)]
        return [slot for slot, held in known if self.leads_to_saved(held, slots, is_saved)]

    def is_limited(self, value: Value) -> bool:
        """Return whether a value is not exactly known, but where in the frame it may be.

        An address whose lowest byte was exchanged is mostly a byte: this is not limited, as a number that was computed.
        """
        reach = self.of(value) if has_reach(value) else None
        return reach is not None and not any(one[:3] in self._exchanged for one in reach)

    def leads_to(self, value: Value, slot: Slot) -> bool:
        """Return whether an address that a callee gets may be that of a slot, or of a word that overlaps it.

        A word is at a multiple of half its size.  What is at another address just below a slot is a string that ends
        there, as when a number is converted to decimal digits from the last one to the first, or a single byte.
        """
        reach = self.of(value)
        return reach is None or any(self._leads_to(one, slot) for one in reach)

    def _leads_to(self, one: Range, slot: Slot) -> bool:
        if one.base != slot[0]:
            return self._overlaps(one, _WORD, slot)
        return self._overlaps(one, 1, slot) or one.first <= slot[1] - _HALF_WORD <= one.last

    def leads_to_saved(self, value: Value, slots: Mapping[Slot, Value], is_saved: IsSaved) -> bool:
        """Return whether a value may be an address of a slot with a saved register, also for a store of a word there.

        Only with an index, the object at the address is taken for a string, as in :meth:`leads_to`.
        """
        if not (on_stack(value[0]) or has_reach(value)):
            return False
        reach, saved = self.of(value), [slot for slot, held in slots.items() if is_saved(held)]
        if reach is None:
            return bool(saved)
        return any(
            self._leads_to(one, slot) if one.by_index else self._overlaps(one, _WORD, slot)
            for slot in saved
            for one in reach
        )


def _is_before_saved(one: Range, slot: Slot, slots: Mapping[Slot, Value], is_saved: IsSaved) -> bool:
    """Return whether no saved register is between the address of an object and a slot."""
    if not one.by_index or one.base != slot[0]:
        return False
    low, high = min(one.first, slot[1]), max(one.last, slot[1])
    return not any(base == one.base and low <= at <= high and is_saved(held) for (base, at), held in slots.items())


def _object(one: Range, slots: Mapping[Slot, Value], is_saved: IsSaved) -> Range:
    """Return the range of the addresses from which a load in a range may read.

    With an index, these are the slots that follow each other around the address, up to a saved register, or to a word
    that may hold anything but an address in the frame: as a word without a slot, it may be of another object.
    """
    low, high = one.first, one.last
    if not one.by_index:
        return one
    for step in (-_WORD, _WORD):
        end = low if step < 0 else high
        while (held := slots.get((one.base, end + step), OTHER))[0] != OTHER_BASE and not is_saved(held):
            end += step
            if held == UNKNOWN:
                break
        low, high = (end, high) if step < 0 else (low, end)
    return one._replace(first=low, last=high)


def has_reach(value: Value) -> bool:
    """Return whether a value is not exactly known, and may be an address in the frame."""
    return value[0] in _REACHING and value[1] >> REACH_SHIFT != 0


def may_be_address(value: Value) -> bool:
    """Return whether a value is an address in the frame, or may be one."""
    base = value[0]  # no calls: this is called for each register at each call
    if base in _NO_ADDRESSES:
        return False
    return base >= SYMBOL or base in (CFA, STACK_BASE) or (base in _REACHING and value[1] >> REACH_SHIFT != 0)
