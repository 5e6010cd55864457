"""Takes the displacement out of those of AMD64's instructions whose registers belong to their meaning."""

from __future__ import annotations

from sframe_unwind.code.decode.machines.amd64_registers import (
    BY_OPERAND,
    ONE_BYTE,
    PREFIXES,
    TWO_BYTES,
    without_registers,
)
from sframe_unwind.code.decode.machines.base import Shape, shape

_IMMEDIATE = 1
_ONE_BYTE = {
    **{opcode: operation.immediate for opcode, operation in ONE_BYTE.items()},
    # xchg; shifts and rotations by cl
    **dict.fromkeys((0x86, 0x87, 0xD2, 0xD3), 0),
}
"""Opcodes with a ModRM byte, and the sizes of their immediates; none of them pushes or pops."""
_UNARY = {0xF6: _IMMEDIATE, 0xF7: BY_OPERAND}
"""``test`` has an immediate: bits 3 to 5 of the ModRM byte are 0 or 1.  The other instructions (``not``, ``neg``,
``mul``, ``imul``, ``div``, ``idiv``) have none."""
_TWO_BYTES = {opcode: operation.immediate for opcode, operation in TWO_BYTES.items()}
"""The same, for opcodes after ``0f`` or in a corresponding VEX prefix."""
_INDIRECT = 0xFF
"""inc, dec, call, jmp, push"""
_BY_PC = (b"\x15", b"\x25")
"""ModRM bytes of calls and jumps to the value of a word at a distance from the instruction."""
_PUSH = 0x68
_REGISTER, _NO_BASE, _SIB = 3, 5, 4


def shape_of(raw: bytes) -> Shape | None:
    """Return the shape of the instruction at the start of some bytes: without its registers, if that is possible."""
    return without_registers(raw) or displacement(raw)


def displacement(raw: bytes) -> Shape | None:
    """Return the shape of an instruction that has a displacement from a register or its address, or pushes a constant.

    Its registers are a part of the shape.
    """
    at, size = 0, 4
    length = len(raw)
    while at < length and raw[at] in PREFIXES:
        size = 2 if raw[at] == 0x66 else size
        at += 1
    if at + 3 > length:
        return None
    if raw[at] & 0xF0 == 0x40:
        size = 4 if raw[at] & 8 else size
        at += 1
    if raw[at] == _PUSH and size == 4:
        return _shape(raw, at + 1, at + 5, at + 5)
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
    return _shape(raw, start, end, end + (size if immediate == BY_OPERAND else immediate))


def _shape(raw: bytes, start: int, end: int, size: int) -> Shape | None:
    """Return the shape of an instruction of a size with a displacement between two offsets in it."""
    if size > len(raw):
        return None
    value = int.from_bytes(raw[start:end], "little", signed=True)
    return shape(size, raw[:start] + raw[end:size], value)


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
