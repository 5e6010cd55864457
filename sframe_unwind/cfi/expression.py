"""Evaluates DWARF expressions in CFI whose value is a place: a register plus an offset, with at most one read.

For AArch64's scalable vectors, a multiple of their length may be added to the place.

Linkers write such expressions for PLT entries, in which the CFA depends on the pc, and compilers for realigned stacks,
in which the CFA is in memory at an offset from the frame pointer.  The operations are those of DWARF 5, 2.5 and 7.7.1.
"""

from __future__ import annotations

import struct
from typing import Callable, Union

from sframe_unwind.address import ByteOrder
from sframe_unwind.arch import Arch
from sframe_unwind.cfi.leb128 import read_sleb128, read_uleb128, sleb128, uleb128
from sframe_unwind.errors import FormatError, UnsupportedExpressionError
from sframe_unwind.memory import STRUCT_MARKS
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind_rule import CFA, RegisterRule

DEREF, _AND, _MINUS, PLUS, _PLUS_UCONST, _SHL, _GE, _NOP = 0x06, 0x1A, 0x1C, 0x22, 0x23, 0x24, 0x2A, 0x96
_CONSTANTS = {0x08: "B", 0x09: "b", 0x0A: "H", 0x0B: "h", 0x0C: "I", 0x0D: "i", 0x0E: "Q", 0x0F: "q"}
_CONSTU, _CONSTS = 0x10, 0x11
_DUP, _SWAP, _MUL, _SHR, _XOR = 0x12, 0x16, 0x1E, 0x25, 0x27
_LIT0, _BREG0, _BREGX, _NUMBERED = 0x30, 0x70, 0x92, 32
_NAMES = {
    0x03: "addr",
    0x12: "dup",
    0x13: "drop",
    0x14: "over",
    0x15: "pick",
    0x16: "swap",
    0x17: "rot",
    0x19: "abs",
    0x1B: "div",
    0x1D: "mod",
    0x1E: "mul",
    0x1F: "neg",
    0x20: "not",
    0x21: "or",
    0x25: "shr",
    0x26: "shra",
    0x27: "xor",
    0x28: "bra",
    0x29: "eq",
    0x2B: "gt",
    0x2C: "le",
    0x2D: "lt",
    0x2E: "ne",
    0x2F: "skip",
    0x94: "deref_size",
    0x95: "xderef_size",
    0x18: "xderef",
    0xA3: "entry_value",
    0x9F: "stack_value",
    DEREF: "deref",
    _AND: "and",
    _MINUS: "minus",
    PLUS: "plus",
    _PLUS_UCONST: "plus_uconst",
    _SHL: "shl",
    _GE: "ge",
}
_WORD = 1 << 64


class _Sum(NamedTuple):
    """A word read from memory, plus a number."""

    place: RegisterRule
    added: int


class _Scaled(NamedTuple):
    """A place or, without one, 0, plus a number, plus a multiple of the vector length."""

    place: RegisterRule | None
    added: int
    lengths: int
    """How many times the value of the register VG."""


Value = Union[int, RegisterRule, _Sum, _Scaled]
"""A number that is known, a place, or a sum."""


class Evaluated(NamedTuple):
    """The value of an expression, in a form that a rule can express."""

    place: RegisterRule
    pc_bits: int
    """Mask of the bits of the pc on which the place depends; 0: it is the same at each address."""
    added: int = 0
    """Bytes that are added to what is read from memory at the place."""
    lengths: int = 0
    """How many times the vector length, in granules of 8 bytes, is added to the place."""


def evaluate(code: bytes, pc: int, arch: Arch, on_cfa: bool) -> Evaluated:
    """Return the place that an expression computes.

    :param code: the operations.
    :param pc: the address for which the rule is asked.
    :param arch: of the code.
    :param on_cfa: the expression begins with the CFA on its stack (rules of registers).
    :raises UnsupportedExpressionError: its value is not a place.
    :raises FormatError: it is cut short.
    """
    stack: list[Value] = [RegisterRule(CFA, 0, False)] if on_cfa else []
    offset = pc_bits = 0
    while offset < len(code):
        operation = code[offset]
        offset += 1
        try:
            if _LIT0 <= operation < _LIT0 + _NUMBERED:
                stack.append(operation - _LIT0)
            elif _BREG0 <= operation < _BREG0 + _NUMBERED or operation == _BREGX:
                register = operation - _BREG0
                if operation == _BREGX:
                    register, offset = read_uleb128(code, offset)
                added, offset = read_sleb128(code, offset)
                if register == arch.pc:
                    pc_bits |= _bits_used(code, offset)
                if register == arch.vector_granules:
                    stack.append(_Scaled(None, added, 1))
                else:
                    stack.append(pc + added if register == arch.pc else RegisterRule(register, added, False))
            elif operation == _PLUS_UCONST:
                added, offset = read_uleb128(code, offset)
                stack.append(_plus(stack.pop(), added))
            elif operation == DEREF:
                stack.append(_dereference(stack.pop()))
            elif operation in _BINARY:
                right, left = stack.pop(), stack.pop()
                stack.append(_BINARY[operation](left, right))
            elif operation in _CONSTANTS or operation in (_CONSTU, _CONSTS):
                constant, offset = _read_constant(code, offset, operation, arch.byteorder)
                stack.append(constant)
            elif operation != _NOP:
                raise UnsupportedExpressionError(_name(operation))
        except IndexError:
            raise UnsupportedExpressionError(f"{_name(operation)} on an empty stack") from None
    result = stack[-1] if stack else None
    if isinstance(result, _Sum):
        return Evaluated(result.place, pc_bits, result.added)
    if isinstance(result, _Scaled) and result.place is not None:
        place = result.place._replace(offset=signed(result.place.offset + result.added))
        return Evaluated(place, pc_bits, 0, result.lengths)
    if not isinstance(result, RegisterRule):
        raise UnsupportedExpressionError("a constant" if stack else "nothing")
    return Evaluated(result, pc_bits)


def _bits_used(code: bytes, offset: int) -> int:
    """Return the mask of the lowest bits of the pc that operations use after it was pushed.

    Linkers write ``DW_OP_lit15; DW_OP_and`` there, since the entries of a PLT have 16 bytes.

    :param offset: offset of the operation after the one that pushed it.
    """
    mask, operation = (*code[offset : offset + 2], 0, 0)[:2]
    mask -= _LIT0
    is_low = 0 <= mask < _NUMBERED and not mask & (mask + 1)
    return mask if is_low and operation == _AND else _WORD - 1


def _name(operation: int) -> str:
    return f"DW_OP_{_NAMES[operation]}" if operation in _NAMES else f"operation {operation:#x}"


def _read_constant(code: bytes, offset: int, operation: int, byteorder: ByteOrder) -> tuple[int, int]:
    if operation in (_CONSTU, _CONSTS):
        return (read_uleb128 if operation == _CONSTU else read_sleb128)(code, offset)
    number = struct.Struct(STRUCT_MARKS[byteorder] + _CONSTANTS[operation])
    if offset + number.size > len(code):
        raise FormatError("the expression ends within a constant")
    return number.unpack_from(code, offset)[0], offset + number.size


def _dereference(value: Value) -> RegisterRule:
    if not isinstance(value, RegisterRule) or value.in_memory:
        raise UnsupportedExpressionError("more than one read from memory")
    return value._replace(in_memory=True)


def _plus(left: Value, right: Value) -> Value:
    if isinstance(left, int) and isinstance(right, int):
        return (left + right) % _WORD
    if isinstance(left, _Scaled) or isinstance(right, _Scaled):
        return _scaled_sum(_scaled(left), _scaled(right))
    place, number = (right, left) if isinstance(left, int) else (left, right)
    if isinstance(place, int) or not isinstance(number, int):
        raise UnsupportedExpressionError("a sum of two places")
    if isinstance(place, _Sum):
        return place._replace(added=signed(place.added + number))
    if place.in_memory:
        return _Sum(place, signed(number))
    return place._replace(offset=signed(place.offset + number))


def _scaled(value: Value) -> _Scaled:
    if isinstance(value, int):
        return _Scaled(None, signed(value), 0)
    if isinstance(value, RegisterRule) and not value.in_memory:
        return _Scaled(value, 0, 0)
    if not isinstance(value, _Scaled):
        raise UnsupportedExpressionError("a sum with a word from memory")
    return value


def _scaled_sum(left: _Scaled, right: _Scaled) -> _Scaled:
    if left.place is not None and right.place is not None:
        raise UnsupportedExpressionError("a sum of two places")
    place = right.place if left.place is None else left.place
    return _Scaled(place, signed(left.added + right.added), left.lengths + right.lengths)


def _times(left: Value, right: Value) -> Value:
    if isinstance(left, int) and isinstance(right, int):
        return left * right % _WORD
    length, number = (right, left) if isinstance(left, int) else (left, right)
    if not isinstance(length, _Scaled) or length.place is not None or not isinstance(number, int):
        raise UnsupportedExpressionError(_name(_MUL))
    return _Scaled(None, signed(length.added * number), length.lengths * signed(number))


def signed(value: int) -> int:
    """Return a number as a signed number of 64 bits."""
    return (value + _WORD // 2) % _WORD - _WORD // 2


def _minus(left: Value, right: Value) -> Value:
    if isinstance(right, _Scaled) and right.place is None:
        return _plus(left, _Scaled(None, -right.added, -right.lengths))
    if not isinstance(right, int):
        raise UnsupportedExpressionError("arithmetic on a register")
    return _plus(left, -right)


def _numbers(compute: Callable[[int, int], int]) -> Callable[[Value, Value], Value]:
    def apply(left: Value, right: Value) -> Value:
        if not isinstance(left, int) or not isinstance(right, int):
            raise UnsupportedExpressionError("arithmetic on a register")
        return compute(left, right) % _WORD

    return apply


_BINARY: dict[int, Callable[[Value, Value], Value]] = {
    PLUS: _plus,
    _MINUS: _minus,
    _MUL: _times,
    _AND: _numbers(lambda left, right: left & right),
    _SHL: _numbers(lambda left, right: left << min(right, 64)),
    _GE: _numbers(lambda left, right: int(signed(left) >= signed(right))),
}


def register_plus(register: int, offset: int) -> bytes:
    """Return the operation that computes a register plus an offset in bytes."""
    number = bytes([_BREG0 + register]) if register < _NUMBERED else bytes([_BREGX]) + uleb128(register)
    return number + sleb128(offset)


def word_unless(offset: int, flags: int, bit: int) -> bytes:
    """Return the expression for a word in memory, whose value is 0 if a bit in another word is set.

    :param offset: offset of the word from the address on the stack, in bytes.  ``flags`` is that of the other word.
    :param bit: number of the bit; the least significant one is 0.
    """
    is_clear = bytes([_SHR, _LIT0 + 1, _AND, _LIT0 + 1, _XOR])
    condition = bytes([_DUP]) + constant(flags) + bytes([PLUS, DEREF]) + constant(bit) + is_clear
    return condition + bytes([_SWAP]) + constant(offset) + bytes([PLUS, DEREF, _MUL])


def constant(number: int) -> bytes:
    """Return the operation that computes a number."""
    return bytes([_CONSTS]) + sleb128(number)
