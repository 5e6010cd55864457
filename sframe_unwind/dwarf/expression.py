"""DWARF expressions in CFI, as far as they amount to a place: a register plus an offset, with at most one read.

That is what the assemblers write for PLT entries (the CFA depends on the pc, which is known) and for realigned stacks
(the CFA is in memory at an offset from the frame pointer).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Callable, Union

from elftools.dwarf.dwarf_expr import DWARFExprParser

from sframe_unwind.unwind_rule import CFA, RegisterRule

Value = Union[int, RegisterRule]
"""A number that is known, or a place."""


class UnsupportedExpressionError(Exception):
    """The expression computes something else; the message names the operation."""


def evaluate(structs: Any, expression: tuple[int, ...], pc: int, pc_register: int, on_cfa: bool) -> RegisterRule:
    """Return the place that an expression computes.

    :param structs: pyelftools' structures, for byte order and sizes.
    :param expression: its bytes.
    :param pc: the address for which the rule is asked.
    :param pc_register: DWARF number of the register that holds the pc.
    :param on_cfa: the expression begins with the CFA on its stack (rules of registers).
    :raises NotAPlaceError: it does not amount to a place.
    """
    stack: list[Value] = [RegisterRule(CFA, 0, False)] if on_cfa else []
    for operation in _parsed(structs, expression):
        try:
            _apply(stack, operation.op_name, operation.args, pc, pc_register)
        except IndexError:
            raise UnsupportedExpressionError(f"{operation.op_name} on an empty stack") from None
    if not stack or not isinstance(stack[-1], RegisterRule):
        raise UnsupportedExpressionError("a constant")
    return stack[-1]


def reads(structs: Any, expression: tuple[int, ...], register: int) -> bool:
    """Return whether an expression adds to the value of a register.

    :param register: its DWARF number.
    """
    return any(operation.op_name == f"DW_OP_breg{register}" for operation in _parsed(structs, expression))


@lru_cache(maxsize=256)
def _parsed(structs: Any, expression: tuple[int, ...]) -> list[Any]:
    return list(DWARFExprParser(structs).parse_expr(list(expression)))


def _apply(stack: list[Value], name: str, args: Sequence[int], pc: int, pc_register: int) -> None:
    number = name.partition("DW_OP_breg")[2]
    if number.isdigit():
        stack.append(pc + args[0] if int(number) == pc_register else RegisterRule(int(number), args[0], False))
    elif name.startswith("DW_OP_lit"):
        stack.append(int(name[len("DW_OP_lit") :]))
    elif name.startswith("DW_OP_const"):
        stack.append(args[0])
    elif name == "DW_OP_plus_uconst":
        stack.append(_plus(stack.pop(), args[0]))
    elif name == "DW_OP_deref":
        place = stack.pop()
        if not isinstance(place, RegisterRule) or place.in_memory:
            raise UnsupportedExpressionError("more than one read from memory")
        stack.append(place._replace(in_memory=True))
    elif name in _BINARY:
        right, left = stack.pop(), stack.pop()
        stack.append(_BINARY[name](left, right))
    elif name != "DW_OP_nop":
        raise UnsupportedExpressionError(name)


def _plus(left: Value, right: Value) -> Value:
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    place, number = (left, right) if isinstance(left, RegisterRule) else (right, left)
    if not isinstance(place, RegisterRule) or not isinstance(number, int) or place.in_memory:
        raise UnsupportedExpressionError("a sum of two places, or of what was read from memory")
    return place._replace(offset=place.offset + number)


def _numbers(compute: Callable[[int, int], int]) -> Callable[[Value, Value], Value]:
    def apply(left: Value, right: Value) -> Value:
        if not isinstance(left, int) or not isinstance(right, int):
            raise UnsupportedExpressionError("arithmetic on a register")
        return compute(left, right)

    return apply


_BINARY: dict[str, Callable[[Value, Value], Value]] = {
    "DW_OP_plus": _plus,
    "DW_OP_minus": lambda left, right: _plus(left, -right if isinstance(right, int) else right),
    "DW_OP_and": _numbers(lambda left, right: left & right),
    "DW_OP_shl": _numbers(lambda left, right: left << min(right, 64)),
    "DW_OP_ge": _numbers(lambda left, right: int(left >= right)),
}
