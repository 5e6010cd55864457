"""AArch64's instructions that depend on the length of scalable vectors (SVE), where that is part of an address."""

from __future__ import annotations

import re

from sframe_unwind.code.decode.instruction import ANYTHING, CONSTANT, REGISTER, SCALED, Instruction, Kind
from sframe_unwind.code.decode.machines.base import Disassembled, signed, writing

_GRANULES = 8
"""In a vector; a predicate is as long as one of them."""
_ZERO = 31
_ADDED = {0x04205000: _GRANULES, 0x04605000: 1}
"""``addvl``, ``addpl``, without registers and number, and what they add."""
_READ = 0x04BF5000
"""``rdvl``"""
_COUNT, _EVERY = 0x0420E000, 31
"""``cntb``, ``cnth``, ``cntw``, ``cntd``, without their operands; the pattern for all elements."""
_STORED = {0xE5804000: _GRANULES, 0xE5800000: 1}
"""``str`` of a vector and of a predicate, without their operands."""
_CONTIGUOUS = re.compile(r"st(nt)?([1-4])([bhwd])$")
_ELEMENTS = re.compile(r"z\d+\.([bhsdq])")
_BYTES = {"b": 1, "h": 2, "w": 4, "s": 4, "d": 8, "q": 16}


def described(found: Disassembled) -> Instruction | None:
    """Return what an instruction does that computes with the vector length, or stores vectors; ``None``: it is none."""
    word = int.from_bytes(found.raw, "little")
    register = word & 0x1F
    units = _ADDED.get(word & 0xFFE0F800)
    if units is not None:  # the stack pointer is number 31, too
        number = units * signed(word >> 5, 6)
        return _setting(register, (SCALED, (REGISTER, word >> 16 & 0x1F, 0), number))
    if word & 0xFFFFF800 == _READ and register != _ZERO:
        return _setting(register, (SCALED, (CONSTANT, 0), _GRANULES * signed(word >> 5, 6)))
    if word & 0xFF30FC00 == _COUNT and word >> 5 & 0x1F == _EVERY and register != _ZERO:
        each = _GRANULES >> (word >> 22 & 3)
        return _setting(register, (SCALED, (CONSTANT, 0), each * ((word >> 16 & 0xF) + 1)))
    units = _STORED.get(word & 0xFFC0E000)
    if units is not None and not (units == 1 and word & 0x10):
        number = signed((word >> 16 & 0x3F) << 3 | word >> 10 & 7, 9)
        return _storing(word >> 5 & 0x1F, units * number, units)
    return _contiguous(found, word)


def _contiguous(found: Disassembled, word: int) -> Instruction | None:
    """Return the effect of a store of one to four consecutive vectors at a register plus vectors."""
    matched, elements = _CONTIGUOUS.match(found.mnemonic), _ELEMENTS.match(found.operands.lstrip("{ "))
    place = found.operands[found.operands.find("[") :]
    if matched is None or elements is None or not re.fullmatch(r"\[(x\d+|sp)(, #-?\w+, mul vl)?\]", place):
        return None
    vectors = int(matched[2])
    units = _GRANULES * _BYTES[matched[3]] // _BYTES[elements[1]]  # elements can be longer than what is stored of them
    number = signed(word >> 16, 4) * vectors if "mul vl" in place else 0
    return _storing(word >> 5 & 0x1F, units * number, units * vectors)


def _setting(register: int, value: tuple[object, ...]) -> Instruction:
    return Instruction(size=4, kind=Kind.NEXT, puts=((register, value),), stores=(), exits=(), target=None)


def _storing(base: int, distance: int, size: int) -> Instruction:
    """Return a store of some granules at a distance of some from an address in a register."""
    return writing(4, (), (((SCALED, (REGISTER, base, 0), distance), (SCALED, (CONSTANT, 0), size), ANYTHING),))
