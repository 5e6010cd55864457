"""Takes the displacement out of s390x instructions, so that those that differ only in it are lifted once.

Instruction formats: z/Architecture Principles of Operation, SA22-7832.
"""

from __future__ import annotations

from sframe_unwind.code.decode.machines.base import Shape, shape, signed

_SHORT = frozenset(
    (
        *(0x41, 0x42, 0x43, 0x48, 0x49, 0x4A, 0x4B, 0x4C, 0x50, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5A, 0x5B),
        *(0x5C, 0x5E, 0x5F, 0x60, 0x68, 0x70, 0x78, 0x90, 0x91, 0x92, 0x94, 0x95, 0x96, 0x97, 0x98),
    )
)
"""First bytes of instructions of four bytes with an unsigned displacement of 12 bits at the end: la, stc, tm, ..."""
_STORING_HALVES = (0x44, 0x48, 0x4C)
"""Second bytes of mvhhi, mvghi and mvhi, whose first is e5."""
_NOT_LONG = frozenset((0x46, 0x47))
"""Sixth bytes of bctg and bic, whose first is e3: their displacement gives the target of a jump."""
_LONG = frozenset((0x04, 0x24, 0x26, 0x51, 0x52, 0x54, 0x55, 0x56, 0x57, 0x90, 0x96, 0x98))
"""Sixth bytes of lmg, stmg, stmh, tmy, mviy, niy, cliy, oiy, xiy, stmy, lmh and lmy, whose first is eb."""
_RELATIVE = {0xC0: (0,), 0xC4: range(16), 0xC6: tuple(range(4, 16))}
"""Instructions with a signed offset from their own address (32 bits, in halfwords), by their first byte: the lower four
bits of their second.  c0 is larl, c4 loads and stores, c6 comparisons."""


def displacement(raw: bytes) -> Shape | None:
    """Return the shape of an instruction that has an operand in memory at a displacement.

    :param raw: its bytes, and possibly more.
    :return: ``None``: the instruction is of another kind, or incomplete.
    """
    first = raw[0]
    if first in _SHORT:
        return _short(raw, 4) if len(raw) >= 4 else None
    if len(raw) < 6:
        return None
    if (first == 0xE3 and raw[5] not in _NOT_LONG) or (first == 0xEB and raw[5] in _LONG):
        value = signed(raw[4] << 12 | (raw[2] & 0xF) << 8 | raw[3], 20)
        return shape(6, bytes((first, raw[1], raw[2] & 0xF0, raw[5])), value)
    if first == 0xED or (first == 0xE5 and raw[1] in _STORING_HALVES):
        return _short(raw, 6)
    if raw[1] & 0xF in _RELATIVE.get(first, ()):
        return shape(6, raw[:2], 2 * int.from_bytes(raw[2:6], "big", signed=True))
    return None


def _short(raw: bytes, size: int) -> Shape:
    value = (raw[2] & 0xF) << 8 | raw[3]
    return shape(size, bytes((raw[0], raw[1], raw[2] & 0xF0)) + raw[4:size], value)
