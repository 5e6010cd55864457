"""Recognises instructions of AArch64 that change neither SP, the frame pointer nor the link register.

An instruction that is not known well enough counts as one that changes them (Arm Architecture Reference Manual, C4.1).
"""

from __future__ import annotations

FP, LR, SP_OR_ZERO = 29, 30, 31
_RET = 0xD65F03C0
_JUMPS = (
    (0xFC000000, 0x14000000, 26, 0),  # b
    (0xFF000010, 0x54000000, 19, 5),  # b.cond
    (0x7E000000, 0x34000000, 19, 5),  # cbz, cbnz
    (0x7E000000, 0x36000000, 14, 5),  # tbz, tbnz
)
"""Mask and value, and bits and position of the distance in instructions."""
_HARMLESS = (
    (0xFFFFFFFF, 0xD503201F),  # nop
    (0xFFFFFF3F, 0xD503241F),  # bti
    (0xFFFFF01F, 0xD503301F),  # dmb, dsb, isb and other barriers
    (0xFFF80000, 0xD5080000),  # dc, ic, at, tlbi
)
_WRITES_SP = (
    (0x3F800000, 0x11000000),  # add, sub (immediate)
    (0x3F800000, 0x12000000),  # and, eor (immediate)
    (0x7F800000, 0x32000000),  # orr (immediate)
    (0x3FE00000, 0x0B200000),  # add, sub (extended register)
)
"""Data processing in which register 31 as the destination can be SP.  Elsewhere it is the zero register."""

_OFFSETS = (
    (0x3B000000, 0x39000000),  # an unsigned offset
    (0x3B200400, 0x38000000),  # a signed one
    (0x3B200C00, 0x38200800),  # a register
    (0x3B000000, 0x18000000),  # from the pc
)
"""Loads and stores of one register that do not change the base."""


def goes_on(instruction: int, address: int) -> tuple[int, ...] | None:
    """Return the addresses of the instructions that can follow one; empty: it returns to the link register.

    :returns: ``None``: it changes SP, FP or LR, goes elsewhere, or is not known.
    """
    if instruction == _RET:
        return ()
    following = address + 4
    for mask, value, bits, shift in _JUMPS:
        if instruction & mask == value:
            distance = instruction >> shift & (1 << bits) - 1
            target = address + 4 * (distance - (distance >> bits - 1 << bits))
            return (target,) if bits == 26 else (following, target)
    return (following,) if _leaves_alone(instruction) else None


def _leaves_alone(instruction: int) -> bool:
    if any(instruction & mask == value for mask, value in _HARMLESS):
        return True
    group = instruction >> 25 & 0xF
    if group & 0b0101 == 0b0100:
        return _load_or_store(instruction)
    destination = instruction & 31
    is_mrs = instruction >> 20 == 0xD53
    if is_mrs or group & 0b1110 == 0b1000 or group & 0b0111 == 0b0101:  # data processing, by an immediate or registers
        if destination == SP_OR_ZERO:
            return not any(instruction & mask == value for mask, value in _WRITES_SP)
        return destination not in (FP, LR)
    return group & 0b0111 == 0b0111 and destination not in (FP, LR)  # SIMD and floating point


def _load_or_store(instruction: int) -> bool:
    first, base, second, status = (instruction >> shift & 31 for shift in (0, 5, 10, 16))
    pair = instruction & 0x3A000000 == 0x28000000
    offset = any(instruction & mask == value for mask, value in _OFFSETS)
    data = set() if instruction >> 26 & 1 else {first, second} if pair else {first}  # SIMD registers are no concern
    if offset or (pair and not instruction >> 23 & 1):
        return not data & {FP, LR}
    if (
        not pair and instruction & 0x3B200400 != 0x38000400
    ):  # neither indexed: which fields are registers is not decoded
        data |= {second, status}
    return not data & {FP, LR} and base not in (FP, LR, SP_OR_ZERO)
