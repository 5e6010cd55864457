"""Abstract values: the contents of a register or stack slot, relative to the function's entry.

A value is a pair of a base and an offset in bytes.  ``(CFA, -16)`` is the canonical frame address minus 16,
``(ENTRY + 6, 0)`` is the value of DWARF register 6 at the function's entry.
"""

from __future__ import annotations

from typing import Final

Value = tuple[int, int]
Slot = tuple[int, int]
"""Base and offset in bytes of the address of eight bytes on the stack."""

CFA: Final = 0
NUMBER: Final = 1
"""A constant; the offset is its value."""
OTHER_BASE: Final = 2
UNKNOWN_BASE: Final = 3
STACK_BASE: Final = 4
RETURN_BASE: Final = 5
SIGNED_BASE: Final = 6
TABLE_BASE: Final = 7
"""An address in a table: a constant, which is the offset, plus an index."""
JUMP_ENTRY: Final = 8
"""An entry of a jump table, or a target made from one; the offset is an index in the interpretation's list."""
CLOBBERED_BASE: Final = 9
"""The value of a register after a call, if the register held a value of interest before the call and the ABI permits
the callee to change it."""
REPLACED_BASE: Final = 10
"""A value that was stored over the return address."""
ALTERED_BASE: Final = 11
"""The CFA, the return address, a caller's register or an address in the frame, after a store over some of its bytes.

A second store over a part may restore these bytes, so the value is unknown after it."""
ENTRY: Final = 16
"""The base ``ENTRY + n`` is the value of DWARF register n at the function's entry."""
SYMBOL: Final = 1 << 20
"""The base ``SYMBOL + 4 * address + kind`` is the stack pointer that the instruction at this address computed."""

OTHER: Final[Value] = (OTHER_BASE, 0)
"""Computed or loaded: certainly no copy of the CFA, the return address or the caller's frame pointer."""
UNKNOWN: Final[Value] = (UNKNOWN_BASE, 0)
"""A value of which nothing is known.  The lower half of its offset is the number of its upper bound
(:class:`.stack_order.Bounds`), the upper half that of its reach (:class:`.reach.Reaches`)."""
STACK: Final[Value] = (STACK_BASE, 0)
"""An address in the stack at a distance from the CFA that is not constant.

The offset is that of :data:`UNKNOWN`."""
REACH_SHIFT: Final = 32
_TOP: Final = (1 << REACH_SHIFT) - 1
RETURN_ADDRESS: Final[Value] = (RETURN_BASE, 0)
"""The return address, if no register holds it at the entry."""
SIGNED: Final[Value] = (SIGNED_BASE, 0)
SIGNED_BY_B: Final[Value] = (SIGNED_BASE, 1)
"""The return address with its authentication code, by the A key or the B key."""

CLOBBERED: Final[Value] = (CLOBBERED_BASE, 0)
REPLACED: Final[Value] = (REPLACED_BASE, 0)
ALTERED: Final[Value] = (ALTERED_BASE, 0)
_JOINED, _DISPLACED, _LOST, _SCALED = 0, 1, 2, 3
_NO_LENGTH: Final = -(1 << 40)
"""The base ``_NO_LENGTH + n`` is a number that depends on the vector length: n times the length, plus the offset."""
_NOT_SCALED: Final = 1 << 40
LENGTHS: Final = range(2, 34, 2)
"""The lengths that scalable vectors can have, in granules of 8 bytes (VG)."""
_MASK, _HALF = (1 << 64) - 1, 1 << 63


def joined(address: int) -> Value:
    """Return the stack pointer at a place where paths with different stack pointers meet."""
    return SYMBOL + 4 * address + _JOINED, 0


def displaced(address: int) -> Value:
    """Return the stack pointer after an instruction moved it by an amount that is not a constant."""
    return SYMBOL + 4 * address + _DISPLACED, 0


def lost(address: int) -> Value:
    """Return the stack pointer after an instruction gave it a value that could not be followed."""
    return SYMBOL + 4 * address + _LOST, 0


def length_count(base: int) -> int | None:
    """Return the number of vector lengths in a base: between the CFA and a stack address, or in a number.

    :return: ``None``: the base is neither at such a distance from the CFA nor such a number.
    """
    if base == CFA:
        return 0
    if base >= SYMBOL:
        return (base - SYMBOL >> 2) - _NOT_SCALED if base & 3 == _SCALED else None
    return base - _NO_LENGTH if base < 0 else None


def is_scaled(base: int) -> bool:
    """Return whether a base is the CFA plus a multiple of the vector length."""
    return base >= SYMBOL and base & 3 == _SCALED


def scaled(value: Value, count: int) -> Value | None:
    """Return a value plus some vector lengths.

    :return: ``None``: the value is neither at a known distance from the CFA nor a number.
    """
    base, offset = value
    known = 0 if base == NUMBER else length_count(base)
    if known is None:
        return None
    total = known + count
    if base == NUMBER or base < 0:
        return (_NO_LENGTH + total, offset) if total else number(offset)
    return (SYMBOL + 4 * (total + _NOT_SCALED) + _SCALED if total else CFA), offset


def is_displaced(base: int) -> bool:
    """Return whether a base is certainly on the stack, at a variable distance from the CFA."""
    return base == STACK_BASE or (base >= SYMBOL and base & 3 == _DISPLACED)


def is_lost(base: int) -> bool:
    """Return whether a base is a stack pointer that could not be followed."""
    return base >= SYMBOL and base & 3 == _LOST


def is_open(base: int) -> bool:
    """Return whether a value with this base may be anything."""
    return base in (UNKNOWN_BASE, CLOBBERED_BASE) or (base >= SYMBOL and base & 3 in (_JOINED, _LOST))


def top_number(value: Value) -> int:
    """Return the number of the upper bound of a value that is not exactly known; 0: it has none."""
    return value[1] & _TOP


def with_top_number(value: Value, top: int) -> Value:
    """Return a value that is not exactly known with another upper bound, which is given by its number."""
    return value[0], value[1] & ~_TOP | top


def on_stack(base: int) -> bool:
    """Return whether a base names the stack, so that it can identify slots."""
    return base == CFA or base >= SYMBOL


def is_stack_address(base: int) -> bool:
    """Return whether a value with this base is an address in the stack, at a constant distance from the CFA or not."""
    return base in (CFA, STACK_BASE) or base >= SYMBOL


def number(value: int) -> Value:
    """Return a constant, as a signed number of 64 bits."""
    value &= _MASK
    return NUMBER, value - (1 << 64) if value >> 63 else value


def plus(value: Value, offset: int) -> Value:
    """Return a value moved by a constant."""
    base, start = value
    if base == CFA or base >= ENTRY:
        return base, (start + offset + _HALF & _MASK) - _HALF
    if base == NUMBER:
        return number(start + offset)
    if base in (OTHER_BASE, CLOBBERED_BASE):
        return value
    if base == ALTERED_BASE:
        return (UNKNOWN_BASE, start) if offset else value
    if base == REPLACED_BASE:
        return OTHER if offset else value
    if base in (STACK_BASE, UNKNOWN_BASE):
        return value if offset <= 0 else (base, start & ~_TOP)
    if base == SIGNED_BASE:
        return OTHER
    if base == TABLE_BASE:
        return base, start + offset
    if base == JUMP_ENTRY:
        return OTHER if offset else value
    return base, (start + offset + _HALF & _MASK) - _HALF
