"""Takes the general registers, the displacement and the constant out of AMD64's instructions.

Only opcodes are here that do the same with each general register: none has an implied operand, and what a register
names is its place in the ModRM byte, in the SIB byte, or in the opcode.
"""

from __future__ import annotations

from sframe_unwind.arch import amd64
from sframe_unwind.code.decode.machines.base import Shape, shape_of_operands
from sframe_unwind.named_tuple import NamedTuple

PREFIXES = frozenset(b"\x66\xf2\xf3")
BY_OPERAND = -1
_REX, _WIDE, _OF_FIELD, _OF_INDEX, _OF_BASE = 0x40, 8, 4, 2, 1
_ESCAPE = 0x0F
_DIRECT, _SIB, _NO_BASE, _NO_INDEX = 3, 4, 5, 4
"""Values of the fields of the ModRM byte and the SIB byte."""
_BY_INDEX, _BY_PC, _BY_NOTHING, _BY_FRAME = 1, 2, 4, 8
"""Bits for the operands in memory of a shape: with an index; at a distance from the instruction, from 0, from the stack
pointer, and, if shifted left by one, from the frame pointer."""
_HIGH_HALVES = range(4, 8)
"""Numbers of ``ah`` to ``bh`` as operands of bytes without REX."""
_NUMBERS = (0, 2, 1, 3, 7, 6, 4, 5, *range(8, 16))
"""DWARF's numbers of the registers, by the numbers in instructions."""
_OF_FRAMES = amd64.SP, amd64.FP
"""Nearly all displacements from these are different ones, so that they have shapes of their own."""
_FREQUENT = (1, -1)
"""Constants with shapes of their own."""
_NEW = b"\x06"
"""An opcode that does not exist: no other key of a shape begins with it."""


class _Operation(NamedTuple):
    """What is known of an opcode with a ModRM byte."""

    has_field: bool = True
    """Whether bits 3 to 5 of the ModRM byte are a general register."""
    has_operand: bool = True
    """Whether the operand may be a general register; otherwise, only operands in memory count."""
    field_is_byte: bool = False
    operand_is_byte: bool = False
    immediate: int = 0
    """Number of bytes of the immediate after the displacement; :data:`BY_OPERAND`: as many as the operand has, up to
    4."""
    kinds: frozenset[int] = frozenset(range(8))
    """If bits 3 to 5 of the ModRM byte are a part of the opcode: the values that are here."""
    constants: frozenset[int] = frozenset()
    """Those of them with which the immediate is only copied, added or compared."""


_WORDS, _BYTES = _Operation(), _Operation(field_is_byte=True, operand_is_byte=True)
_GROUP = _Operation(has_field=False)
_SUMS = _GROUP._replace(constants=frozenset((0, 5, 7)))  # add, sub, cmp
_INVERSIONS = _GROUP._replace(kinds=frozenset((2, 3)))  # not, neg
_MOVED = _GROUP._replace(kinds=frozenset((0,)), constants=frozenset((0,)))
_IN_MEMORY = _Operation(has_field=False, has_operand=False)
ONE_BYTE = {
    # add, or, adc, sbb, and, sub, xor, cmp; movslq; test, mov
    **{row + low: _WORDS if low & 1 else _BYTES for row in range(0, 0x40, 8) for low in range(4)},
    **dict.fromkeys((0x63, 0x85, 0x89, 0x8B), _WORDS),
    **dict.fromkeys((0x84, 0x88, 0x8A), _BYTES),
    # lea; imul
    0x8D: _Operation(has_operand=False),
    0x69: _WORDS._replace(immediate=BY_OPERAND),
    0x6B: _WORDS._replace(immediate=1),
    # add to cmp; shifts and rotations; not and neg; mov
    0x80: _SUMS._replace(operand_is_byte=True, immediate=1),
    0x81: _SUMS._replace(immediate=BY_OPERAND),
    0x83: _SUMS._replace(immediate=1),
    0xC0: _GROUP._replace(operand_is_byte=True, immediate=1),
    0xC1: _GROUP._replace(immediate=1),
    0xD0: _GROUP._replace(operand_is_byte=True),
    0xD1: _GROUP,
    0xF6: _INVERSIONS._replace(operand_is_byte=True),
    0xF7: _INVERSIONS,
    0xC6: _MOVED._replace(operand_is_byte=True, immediate=1),
    0xC7: _MOVED._replace(immediate=BY_OPERAND),
}
"""Opcodes with a ModRM byte; none of them pushes or pops."""
TWO_BYTES = {
    # movups, movlps, unpck, movhps; movaps, conversions, ucomiss, comiss; sqrtps to movdqa (all of SSE and MMX)
    **dict.fromkeys((*range(0x10, 0x18), *range(0x28, 0x2C), 0x2E, 0x2F, *range(0x51, 0x70)), _IN_MEMORY),
    # pcmpeqb, pcmpeqw, pcmpeqd; haddps, hsubps, movd, movdqa; addsubps to paddd (all of SSE and MMX)
    **dict.fromkeys((0x74, 0x75, 0x76, *range(0x7C, 0x80), *range(0xD0, 0xFF)), _IN_MEMORY),
    # pshufd, cmpps, pinsrw, shufps
    **dict.fromkeys((0x70, 0xC2, 0xC4, 0xC6), _IN_MEMORY._replace(immediate=1)),
    # conversions to a general register; cmov; setcc
    **dict.fromkeys((0x2C, 0x2D), _Operation(has_operand=False)),
    **dict.fromkeys(range(0x40, 0x50), _WORDS),
    **dict.fromkeys(range(0x90, 0xA0), _GROUP._replace(operand_is_byte=True)),
    # imul; movzx; movsx
    **dict.fromkeys((0xAF, 0xB7, 0xBF), _WORDS),
    **dict.fromkeys((0xB6, 0xBE), _WORDS._replace(operand_is_byte=True)),
}
"""Opcodes after ``0f``."""
_MOVE = range(0xB8, 0xC0)
"""``mov`` of a constant to the register in the lowest three bits of the opcode."""

_BY_ACCUMULATOR = {0x04: 1, 0x05: 4, 0x2C: 1, 0x2D: 4, 0x3C: 1, 0x3D: 4}
"""``add``, ``sub`` and ``cmp`` of a constant and ``rax``, and the size of the constant."""


class _Operands(NamedTuple):
    """The operands of an instruction: its ModRM byte, and what belongs to that."""

    registers: list[int]
    rest: bytes
    """The ModRM byte and the SIB byte without the registers."""
    displacement: int
    """Offset of the displacement in the instruction."""
    end: int
    """Offset of what follows the displacement."""
    is_fixed: bool = False
    """Whether the last register is a part of the shape."""
    is_by_pc: bool = False
    """Whether the displacement is the distance from the end of the instruction."""


def without_registers(raw: bytes) -> Shape | None:
    """Return the shape of the instruction at the start of some bytes, without its general registers.

    :return: ``None``: the instruction is of another kind.
    """
    at, size = 0, 4
    while at < len(raw) and raw[at] in PREFIXES:
        size = 2 if raw[at] == 0x66 else size
        at += 1
    start = raw[:at]
    rex = raw[at] if at < len(raw) and raw[at] & 0xF0 == _REX else 0
    at += rex > 0
    if at + 1 >= len(raw):
        return None
    size = 4 if rex & _WIDE else size
    opcode = raw[at]
    if size == 4 and opcode in _MOVE:
        return _moved_constant(raw, start, rex, at)
    if size == 4 and opcode in _BY_ACCUMULATOR:
        return _by_accumulator(raw, at)
    operation = TWO_BYTES.get(raw[at + 1]) if opcode == _ESCAPE else ONE_BYTE.get(opcode)
    place = at + (2 if opcode == _ESCAPE else 1)
    found = None if operation is None or place >= len(raw) else _operands(raw, place, rex, operation)
    if operation is None or found is None:
        return None
    whole = found.end + (size if operation.immediate == BY_OPERAND else operation.immediate)
    if whole > len(raw):
        return None
    numbers, rest = [_number(raw, found.displacement, found.end)], raw[found.end : whole]
    if rest and size == 4 and (operation.has_field or raw[place] >> 3 & 7 in operation.constants):
        constant = _number(raw, found.end, whole)
        if constant not in _FREQUENT:
            numbers.append(constant)
            rest = b""
    kept = rex & _WIDE if operation.has_field else rex & (_WIDE | _OF_FIELD)
    if found.is_by_pc:
        kept |= whole << 4  # with REX, an instruction is longer, and the distance counts from its end
    key = _NEW + start + bytes((kept,)) + raw[at:place] + found.rest + rest
    return shape_of_operands(whole, key, numbers, found.registers, found.is_fixed)


def _moved_constant(raw: bytes, start: bytes, rex: int, at: int) -> Shape | None:
    end = at + (9 if rex & _WIDE else 5)
    if end > len(raw):
        return None
    register = _NUMBERS[raw[at] & 7 | (rex & _OF_BASE) << 3]
    key = _NEW + start + bytes((rex & _WIDE, _MOVE[0]))
    return shape_of_operands(end, key, [_number(raw, at + 1, end)], [register])


def _by_accumulator(raw: bytes, at: int) -> Shape | None:
    end = at + 1 + _BY_ACCUMULATOR[raw[at]]
    return shape_of_operands(end, _NEW + raw[: at + 1], [_number(raw, at + 1, end)], []) if end <= len(raw) else None


def _number(raw: bytes, start: int, end: int) -> int:
    return int.from_bytes(raw[start:end], "little", signed=True)


def _operands(raw: bytes, place: int, rex: int, operation: _Operation) -> _Operands | None:
    """Return the operands of an instruction; ``None``: some of them have another meaning than a general register."""
    first = raw[place]
    mode, field, operand = first >> 6, first >> 3 & 7, first & 7
    is_old = not rex
    registers = []
    if operation.has_field:
        if operation.field_is_byte and is_old and field in _HIGH_HALVES:
            return None
        registers.append(_NUMBERS[field | (rex & _OF_FIELD) << 1])
        first &= 0xC0
    elif field in operation.kinds:
        first &= 0xF8
    else:
        return None
    if mode != _DIRECT:
        return _in_memory(raw, place, rex, first & 0x38, registers)
    if not operation.has_operand or (operation.operand_is_byte and is_old and operand in _HIGH_HALVES):
        return None
    registers.append(_NUMBERS[operand | (rex & _OF_BASE) << 3])
    return _Operands(registers, bytes((first,)), place + 1, place + 1)


def _in_memory(raw: bytes, place: int, rex: int, first: int, registers: list[int]) -> _Operands | None:
    """Return the operands of an instruction with one in memory.

    :param first: bits 3 to 5 of the ModRM byte if they are no register.
    :param registers: those in the ModRM byte; this adds to them.
    """
    mode, base = raw[place] >> 6, raw[place] & 7
    at = place + 1
    second, without_base = 0, _BY_PC
    if base == _SIB:
        if at >= len(raw):
            return None
        scale, index, base = raw[at] & 0xC0, raw[at] >> 3 & 7 | (rex & _OF_INDEX) << 2, raw[at] & 7
        at += 1
        without_base = _BY_NOTHING
        if index != _NO_INDEX:
            registers.append(_NUMBERS[index])
            second = scale | _BY_INDEX
    is_wide, is_fixed = mode == 2, False
    if base == _NO_BASE and not mode:
        is_wide = True
        second |= without_base
    else:
        registers.append(_NUMBERS[base | (rex & _OF_BASE) << 3])
        first |= bool(mode) << 6  # the size of the displacement makes no difference
        if registers[-1] in _OF_FRAMES:
            second |= _BY_FRAME << _OF_FRAMES.index(registers[-1])
            is_fixed = True
    end = at + (4 if is_wide else mode == 1)
    rest, is_by_pc = bytes((first, second)), bool(second & _BY_PC)
    return _Operands(registers, rest, at, end, is_fixed=is_fixed, is_by_pc=is_by_pc)
