"""Orders the addresses that a stack pointer had, if their distances are not constant.

The stack grows downward, and an allocation of variable size is not negative.  So the new value of a stack pointer has
an upper bound: it is at or below another value plus a constant.  A store through a stack pointer without a known bound
may overwrite any slot.
"""

from __future__ import annotations

from sframe_unwind.code.interpret.values import (
    CFA,
    LENGTHS,
    NUMBER,
    STACK_BASE,
    UNKNOWN_BASE,
    Value,
    is_displaced,
    is_scaled,
    length_count,
    on_stack,
    top_number,
    with_top_number,
)

Tops = dict[int, Value]
"""Maps the base that names a stack pointer to its upper bound.  Never changed in place."""
NO_TOPS: Tops = {}

_MAX_CHAIN = 64
"""Maximum number of stack pointers that are followed from one to the next."""
_WORD = 8


class Bounds:
    """Gives upper bounds numbers, with which abstract values of stack addresses refer to them; 0: no bound."""

    def __init__(self) -> None:
        self._values: list[Value] = [(CFA, 0)]
        self._numbers: dict[Value, int] = {}

    def of(self, value: Value) -> Value | None:
        """Return the upper bound of a stack address; ``None``: it is not known."""
        base, _ = value
        if base in (STACK_BASE, UNKNOWN_BASE):
            top = top_number(value)
            return self._values[top] if top else None
        return value if on_stack(base) else None

    def without(self, base: int, value: Value) -> Value:
        """Return a value without its bound, if a base that begins to name another stack pointer is in the bound."""
        top = top_number(value) if value[0] in (STACK_BASE, UNKNOWN_BASE) else 0
        return with_top_number(value, 0) if top and self._values[top][0] == base else value

    def number(self, value: Value) -> int:
        """Return the number of a bound."""
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = len(self._values)
            self._values.append(value)
        return found


def most(tops: Tops, value: Value, base: int) -> int | None:
    """Return the greatest distance in bytes of a value from a base; ``None``: not known."""
    current, offset = value
    for _ in range(_MAX_CHAIN):
        if current == base:
            return offset
        if is_scaled(current) or is_scaled(base):
            counts = length_count(current), length_count(base)
            if counts[0] is not None and counts[1] is not None:
                return offset + max((counts[0] - counts[1]) * length for length in LENGTHS)
        above = tops.get(current)
        if above is None:
            return None
        current, offset = above[0], above[1] + offset
    return None


def may_overlap(tops: Tops, address: Value, size: int, slot: Value) -> bool:
    """Return whether a store of ``size`` bytes may overwrite a slot of eight bytes at an address with another base.

    A store at an address that an allocation of variable size gave is assumed to stay within the allocation.
    """
    base, offset = address
    if is_scaled(base) or is_scaled(slot[0]):
        found = overlaps(address, (NUMBER, size), slot)
        if found is not None:
            return found
    end = offset + size
    if is_displaced(base):
        end = min(end, 0)
    above = most(tops, (base, end), slot[0])
    if above is not None:
        return slot[1] < above
    above = most(tops, slot, address[0])
    return above is None or address[1] < above + _WORD


def overlaps(address: Value, size: Value, slot: Value) -> bool | None:
    """Return whether some bytes may overlap a slot, if both are at a multiple of the vector length from the CFA.

    :param size: number of bytes, or a multiple of the vector length.
    :return: ``None``: one of them is not at such a distance.
    """
    counts = length_count(address[0]), length_count(slot[0])
    if counts[0] is None or counts[1] is None:
        return None
    apart, lengths = slot[1] - address[1], (0 if size[0] == NUMBER else length_count(size[0]) or 0)
    return any(-_WORD < apart + (counts[1] - counts[0]) * length < size[1] + lengths * length for length in LENGTHS)


def is_above(tops: Tops, slot: Value, sp: Value) -> bool:
    """Return whether a slot is certainly at or above a stack pointer."""
    above = most(tops, sp, slot[0])
    return above is not None and slot[1] >= above


def with_top(tops: Tops, base: int, top: Value | None) -> Tops:
    """Return the bounds after a base begins to name another stack pointer.

    :param top: upper bound of the new one; ``None``: it has none.
    """
    old = tops.get(base)
    result = {}
    for name, above in tops.items():
        if name == base:
            continue
        if above[0] != base:
            result[name] = above
        elif old is not None:
            result[name] = old[0], old[1] + above[1]
    if top is not None and top[0] == base:
        top = None if old is None else (old[0], old[1] + top[1])
    if top is not None:
        result[base] = top
    return result


def shared(left: Tops, right: Tops) -> Tops:
    """Return the bounds that hold in two states."""
    if left == right:
        return left
    result = {}
    for base in left.keys() & right.keys():
        top = weakened(left, base, right, (base, 0))
        if top is not None:
            result[base] = top
    return result


def weakened(known: Tops, base: int, other: Tops, value: Value) -> Value | None:
    """Return an upper bound of a stack pointer for a place where it may also have another value.

    The bound may become one by another base.  By the same base, it would rise in each round of a loop: it rises only
    from the CFA, and to a power of two bytes below that, so that it does not rise often.

    :param known: the bounds in the first state, in which the stack pointer is ``base``.
    :param other: the bounds in the second state, in which it is ``value``.
    """
    current, offset = known[base]
    is_first = True
    for _ in range(_MAX_CHAIN):
        reached = most(other, value, current)
        if reached is not None and not (is_first and reached > offset):
            return current, max(offset, reached)
        if reached is not None and current == CFA and reached < 0:
            return CFA, -(1 << (-reached).bit_length() - 1)
        if current not in known:
            return None
        is_first = False
        current, offset = known[current][0], known[current][1] + offset
    return None


def highest(left: tuple[Tops, Value], right: tuple[Tops, Value], renewed: int) -> Value | None:
    """Return an upper bound of two stack addresses.

    :param left: the bounds in the first state, and its address.
    :param right: the same of the second state.
    :param renewed: a base that begins to name another stack pointer, and cannot be used.
    """
    for base in (right[1][0], left[1][0], CFA):
        if base != renewed:
            offsets = most(*left, base), most(*right, base)
            if offsets[0] is not None and offsets[1] is not None:
                return base, max(offsets[0], offsets[1])
    return None
