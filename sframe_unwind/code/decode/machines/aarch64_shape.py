"""Takes the displacement, or the constant to add, out of AArch64's instructions."""

from __future__ import annotations

from sframe_unwind.code.decode.machines.base import Shape, shape, signed


class _Field:
    """A range of bits of an instruction, as a number of bytes."""

    def __init__(self, low: int, bits: int, is_signed: bool = True) -> None:
        self._low, self._bits, self._is_signed = low, bits, is_signed
        self.mask = (1 << bits) - 1 << low

    def value(self, word: int) -> int:
        found = word >> self._low & (1 << self._bits) - 1
        return signed(found, self._bits) if self._is_signed else found


_ADDED = _Field(10, 12, is_signed=False)
_UNSCALED = _Field(12, 9)
_PAIR = _Field(15, 7)
_NEAR, _NEARER = _Field(5, 19), _Field(5, 14)
_PAGES = 0x60FFFFE0
"""``immlo`` and ``immhi`` of ``adr`` and ``adrp``."""


def displacement(raw: bytes) -> Shape | None:
    """Return the shape of an instruction that loads, stores, adds a number or jumps if a register is zero."""
    if len(raw) < 4:
        return None
    word = int.from_bytes(raw[:4], "little")
    if word & 0x1F000000 == 0x10000000:  # adr, adrp
        value = signed(word >> 3 & 0x1FFFFC | word >> 29 & 3, 21)
        return _shape(word, _PAGES, value << 12 if word >> 31 else value)
    field, scale = _field(word)
    return None if field is None else _shape(word, field.mask, field.value(word) << scale)


def _field(word: int) -> tuple[_Field | None, int]:
    """Return the field and its shift, for the classes of instructions of the architecture's manual."""
    vector = word >> 26 & 1
    if word & 0x3B000000 == 0x39000000:  # load or store with an unsigned distance, in units of the operand's size
        scale = word >> 30 | (4 if vector and word & 0x00800000 else 0)
        return (_ADDED, scale) if scale <= 4 else (None, 0)
    if word & 0x3B200000 == 0x38000000 and (word >> 10 & 3) != 2:  # ldur, stur, and with writing back
        return _UNSCALED, 0
    if word & 0x3A000000 == 0x28000000:  # pairs
        scale = (word >> 30) + 2 if vector else 3 if word >> 31 else 2
        return (_PAIR, scale) if word >> 30 != 3 else (None, 0)
    if word & 0x1F800000 == 0x11000000:  # add, sub, cmp
        return _ADDED, 12 * (word >> 22 & 1)
    if word & 0x3B000000 == 0x18000000 or word & 0x7E000000 == 0x34000000:  # ldr from a literal; cbz, cbnz
        return _NEAR, 2
    return (_NEARER, 2) if word & 0x7E000000 == 0x36000000 else (None, 0)  # tbz, tbnz


def _shape(word: int, mask: int, value: int) -> Shape:
    return shape(4, (word & ~mask).to_bytes(4, "little"), value)
