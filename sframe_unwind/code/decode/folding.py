"""Sums, shifts and other operations on expressions; known operands are folded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from sframe_unwind.code.decode.instruction import (
    ADD,
    AND,
    CHOICE,
    COMPUTED,
    CONSTANT,
    EXTEND,
    LOAD,
    MIXED,
    PAGE_RELATIVE,
    PC_RELATIVE,
    REGISTER,
    RESULT,
    SHIFT_LEFT,
    SHIFT_RIGHT,
    SUBTRACT,
    UNKNOWN,
    Expression,
)

_MOST_NODES = 32
"""Maximum number of nodes of an operand: VEX's blocks for ``fxrstor`` and its like nest the same operand many times."""
_INNER = {ADD: 2, SUBTRACT: 2, CHOICE: 2, AND: 1, SHIFT_LEFT: 1, SHIFT_RIGHT: 1}
"""Node kinds whose values are computed from operands, and the number of these, which come first."""
_NESTED = {**_INNER, EXTEND: 1, LOAD: 1}
"""Node kinds that contain others, and their number."""


def add(left: Expression, right: Expression) -> Expression:
    """Return a sum."""
    if left[0] == CONSTANT:
        left, right = right, left
    return moved(left, right[1]) if right[0] == CONSTANT else (ADD, left, right)


def moved(operand: Expression, offset: int) -> Expression:
    """Return an operand plus a number of bytes."""
    if not offset or operand[0] == COMPUTED:
        return operand
    if operand[0] == REGISTER:
        return (REGISTER, operand[1], operand[2] + offset)
    if operand[0] in (CONSTANT, PC_RELATIVE, PAGE_RELATIVE):
        return (operand[0], operand[1] + offset)
    return (ADD, operand, (CONSTANT, offset))


def extend(operand: Expression, bits: int, signed: bool) -> Expression:
    """Return the low bits of an operand, extended to 64."""
    if operand[0] == CONSTANT:
        value = operand[1] & (1 << bits) - 1
        return (CONSTANT, value - (1 << bits) if signed and value >> (bits - 1) else value)
    if operand[0] == LOAD and 8 * operand[2] == bits:
        return (LOAD, operand[1], operand[2], signed)
    if operand[0] == EXTEND:
        operand = operand[1] if operand[2] >= bits else operand
    return operand if operand == RESULT else (EXTEND, operand, bits, signed)


def shifted(operation: str, left: Expression, right: Expression) -> Expression:
    """Return a shift, given the name of VEX's operation."""
    if right[0] != CONSTANT or not 0 <= right[1] < 64:
        return mixed(left, right)
    if not right[1]:
        return left
    if operation == "Iop_Shl64":
        return (SHIFT_LEFT, left, right[1])
    is_signed = operation == "Iop_Sar64"
    if left[0] == SHIFT_LEFT and left[2] == right[1]:
        return extend(left[1], 64 - right[1], is_signed)
    return (SHIFT_RIGHT, left, right[1], is_signed) if left[0] in (REGISTER, EXTEND) else mixed(left)


def mixed(*operands: Expression) -> Expression:
    """Return a result of operands whose computation is not followed."""
    known: list[Expression] = []
    for operand in operands:
        known += operand[1] if operand[0] == MIXED else [operand]
    wanted = tuple(dict.fromkeys(operand for operand in known if operand[0] not in (COMPUTED, CONSTANT, EXTEND)))
    return (MIXED, wanted) if wanted else RESULT


def unknown(*operands: Expression) -> Expression:
    """Return any value that, if it is an address in the frame, is near one of some operands."""
    return (UNKNOWN, *(operand for operand in operands if operand[0] not in (COMPUTED, CONSTANT, EXTEND)))


def bounded(operand: Expression) -> Expression:
    """Return an operand, or what is mixed of its parts if it has too many nodes to be copied into others."""
    nodes = _parts(operand, _NESTED)
    if next(islice(nodes, _MOST_NODES, None), None) is None:
        return operand
    return mixed(*(part for part in _parts(operand, _INNER) if part[0] not in _INNER))


def _parts(operand: Expression, counts: Mapping[int, int]) -> Iterator[Expression]:
    """Yield an operand and its parts, given how many parts each kind of node has."""
    yield operand
    for part in operand[1 : 1 + counts.get(operand[0], 0)]:
        yield from _parts(part, counts)
