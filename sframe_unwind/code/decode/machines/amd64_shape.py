"""Takes the displacement, or the constant to add, out of AMD64's instructions."""

from __future__ import annotations

from sframe_unwind.code.decode.machines.base import Shape, shape

_PREFIXES = frozenset(b"\x66\xf2\xf3")
_IMMEDIATE, _BY_OPERAND = 1, -1
"""Number of bytes of an immediate after the displacement; ``_BY_OPERAND``: as many as the operand has, up to 4."""

_ONE_BYTE = {
    # add, or, adc, sbb, and, sub, xor, cmp between registers and memory
    **{row + low: 0 for row in range(0, 0x40, 8) for low in range(4)},
    # movslq; test, xchg, mov; lea; shifts and rotations by 1 and by cl
    **dict.fromkeys((0x63, *range(0x84, 0x8C), 0x8D, 0xD0, 0xD1, 0xD2, 0xD3), 0),
    # imul; add to cmp, of bytes and of words; shifts and rotations; mov of a byte
    **dict.fromkeys((0x6B, 0x80, 0x83, 0xC0, 0xC1, 0xC6), _IMMEDIATE),
    # imul; add to cmp; mov
    **dict.fromkeys((0x69, 0x81, 0xC7), _BY_OPERAND),
}
"""Opcodes with a ModRM byte, and their immediates; none of them pushes or pops."""
_UNARY = {0xF6: _IMMEDIATE, 0xF7: _BY_OPERAND}
"""``test`` has an immediate: bits 3 to 5 of the ModRM byte are 0 or 1.  The other instructions (``not``, ``neg``,
``mul``, ``imul``, ``div``, ``idiv``) have none."""
_TWO_BYTES = {
    # movups, movlps, unpck, movhps; movaps, conversions, ucomiss, comiss; cmov; sqrtps to movdqa (all of SSE and MMX)
    **dict.fromkeys((*range(0x10, 0x18), *range(0x28, 0x30), *range(0x40, 0x50), *range(0x51, 0x70)), 0),
    # pcmpeqb, pcmpeqw, pcmpeqd; haddps, hsubps, movd, movdqa; setcc
    **dict.fromkeys((0x74, 0x75, 0x76, *range(0x7C, 0x80), *range(0x90, 0xA0)), 0),
    # imul; movzx; movsx; addsubps to paddd (all of SSE and MMX)
    **dict.fromkeys((0xAF, 0xB6, 0xB7, 0xBE, 0xBF, *range(0xD0, 0xFF)), 0),
    # pshufd, cmpps, pinsrw, shufps
    **dict.fromkeys((0x70, 0xC2, 0xC4, 0xC6), _IMMEDIATE),
}
"""The same, for opcodes after ``0f`` or in a corresponding VEX prefix."""
_INDIRECT = 0xFF
"""inc, dec, call, jmp, push"""
_BY_PC = (b"\x15", b"\x25")
"""ModRM bytes of calls and jumps to the value of a word at a distance from the instruction."""
_PUSH, _MOVE, _MOVE_WIDE = 0x68, range(0xB8, 0xC0), 0xC7
_ARITHMETIC, _ARITHMETIC_SHORT, _SUMS = 0x81, 0x83, (0, 5, 7)
"""Opcodes with an immediate, and bits 3 to 5 of the ModRM byte for add, sub and cmp."""
_REGISTER, _NO_BASE, _SIB = 3, 5, 4


def displacement(raw: bytes) -> Shape | None:
    """Return the shape of the instruction at the start of some bytes.

    An instruction has a shape if it has a displacement from a register or from its own address, or if it moves, pushes,
    adds, subtracts or compares a constant.
    """
    at, size = 0, 4
    length = len(raw)
    while at < length and raw[at] in _PREFIXES:
        size = 2 if raw[at] == 0x66 else size
        at += 1
    if at + 3 > length:
        return None
    if raw[at] & 0xF0 == 0x40:
        size = 4 if raw[at] & 8 else size
        at += 1
    constant = _constant(raw, at) if size == 4 else 0
    if constant:
        start = at + 1 + (raw[at] in (_MOVE_WIDE, _ARITHMETIC, _ARITHMETIC_SHORT))
        return _shape(raw, start, start + constant, start + constant)
    immediate, at = _opcode(raw, at)
    if immediate is None or at >= length:
        return None
    mode, base = raw[at] >> 6, raw[at] & 7
    if mode == _REGISTER:
        return None
    start = at + 1
    if base == _SIB:
        base = raw[start] & 7 if start < length else _NO_BASE
        start += 1
    wide = mode == 2 or (mode == 0 and base == _NO_BASE)
    if not wide and mode == 0:
        return None
    end = start + (4 if wide else 1)
    return _shape(raw, start, end, end + (size if immediate == _BY_OPERAND else immediate))


def _shape(raw: bytes, start: int, end: int, size: int) -> Shape | None:
    """Return the shape of an instruction of a size with a displacement between two offsets in it."""
    if size > len(raw):
        return None
    value = int.from_bytes(raw[start:end], "little", signed=True)
    return shape(size, raw[:start] + raw[end:size], value)


def _constant(raw: bytes, at: int) -> int:
    """Return the size of the constant that an instruction without operand in memory moves, pushes, adds or compares."""
    opcode, is_wide = raw[at], bool(at) and raw[at - 1] & 0xF8 == 0x48
    if opcode == _PUSH or (opcode in _MOVE and not is_wide):
        return 4
    operands = raw[at + 1] if at + 1 < len(raw) else 0
    if operands >> 6 != _REGISTER:
        return 0
    if opcode == _MOVE_WIDE and operands & 0x38 == 0:
        return 4
    if opcode in (_ARITHMETIC, _ARITHMETIC_SHORT) and operands >> 3 & 7 in _SUMS:
        return 4 if opcode == _ARITHMETIC else 1
    return 0


def _opcode(raw: bytes, at: int) -> tuple[int | None, int]:
    """Return the size of the immediate of an instruction, and the place of its ModRM byte."""
    opcode = raw[at]
    if opcode == 0x0F:
        second = raw[at + 1] if at + 1 < len(raw) else 0
        if second in (0x38, 0x3A):
            return (0 if second == 0x38 else _IMMEDIATE), at + 3
        return _TWO_BYTES.get(second), at + 2
    if opcode in (0xC4, 0xC5):
        if at or len(raw) < 4:
            return None, 0
        if opcode == 0xC5:
            return _TWO_BYTES.get(raw[2]), 3
        table = raw[1] & 0x1F
        if table == 1:
            return _TWO_BYTES.get(raw[3]), 4
        return {2: 0, 3: _IMMEDIATE}.get(table), 4
    if opcode == _INDIRECT and raw[at + 1 : at + 2] in _BY_PC:
        return 0, at + 1
    if opcode in _UNARY and at + 1 < len(raw):
        return (0 if raw[at + 1] & 0x30 else _UNARY[opcode]), at + 1
    return _ONE_BYTE.get(opcode), at + 1
