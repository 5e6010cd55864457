"""Encodes the lifter's claims about an instruction as words, by which the driver checks steps (claims.h)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lab.code.witness.driver import AT, GRANULES
from sframe_unwind.code.decode.instruction import (
    ADD,
    AND,
    CC_LEFT,
    CC_OPERATION,
    CC_RIGHT,
    CHOICE,
    CONSTANT,
    DIRECTED,
    DIRECTION,
    EXTEND,
    LOAD,
    PAGE_RELATIVE,
    PC_RELATIVE,
    REGISTER,
    SCALED,
    SHIFT_LEFT,
    SHIFT_RIGHT,
    SUBTRACT,
    Expression,
    Instruction,
    Kind,
)
from sframe_unwind.code.decode.machines import Machine

_MASK = (1 << 64) - 1
MOST = 2048
"""Maximum number of words of an instruction."""
_MOST_STORES = 64
# As in claims.h.
_NOTHING, _GENERAL, _VECTOR, _NUMBER, _LOADED, _SUM, _DIFFERENCE, _MASKED, _LEFT, _RIGHT, _EXTENDED, _TRAPPED = range(
    12
)
_DIRECTED = 12
_NO_CONDITION, _CONDITION_KEPT, _CONDITION_OF = range(3)
_BINARY = {ADD: _SUM, SUBTRACT: _DIFFERENCE}
_UNARY = {LOAD: _LOADED, AND: _MASKED, SHIFT_LEFT: _LEFT, SHIFT_RIGHT: _RIGHT, EXTEND: _EXTENDED}


class Words:
    """Writes the claims of one machine's lifter.

    :param halves: the driver's places of the halves of vector registers, by their numbers.
    :param address_bits: the significant bits of an address.
    :param equal: the bits of the condition code that show that two operands are equal, and their values then.
    """

    def __init__(self, machine: Machine, halves: Mapping[int, int], address_bits: int, equal: tuple[int, int]) -> None:
        self._machine = machine
        self._halves = halves
        self._equal = equal
        general, vectors = sum(1 << number for number in machine.general), sum(1 << at for at in halves.values())
        self._head = (address_bits, general, vectors)

    def of(self, instruction: Instruction, leaves_condition: bool) -> tuple[int, ...]:
        """Return the words; none if there would be too many."""
        ways: list[tuple[Expression | None, Instruction]] = [(None, instruction)]
        for leaving in instruction.exits:
            puts, stores = instruction.puts[: leaving.puts], instruction.stores[: leaving.stores]
            ways.append((leaving.target, instruction._replace(puts=puts, stores=stores)))
        if len(instruction.stores) > _MOST_STORES:
            return ()
        found = [*self._head, *self._targets(instruction), len(ways)]
        for target, way in ways:
            found.append(target is not None)
            if target is not None:
                found += self._expression(target)
            found += self._registers(dict(way.puts))
            found.append(len(way.stores))
            for address, size, value in way.stores:
                found += self._expression(address)
                found += (_NUMBER, size) if isinstance(size, int) else self._expression(size)
                found += self._expression(value)
        found += self._condition(dict(instruction.puts)) if leaves_condition else (_NO_CONDITION,)
        return tuple(word & _MASK for word in found) if len(found) <= MOST else ()

    def _targets(self, instruction: Instruction) -> Iterator[int]:
        kind = instruction.kind
        targets = [list(self._expression(leaving.target)) for leaving in instruction.exits]
        if kind in (Kind.NEXT, Kind.SYSTEM):
            targets.append([_NUMBER, AT + instruction.size])
        elif kind in (Kind.JUMP, Kind.CALL) and instruction.target is not None:
            targets.append(list(self._expression(instruction.target)))
        elif kind is Kind.TRAP:
            targets.append([_TRAPPED])
        else:
            targets = []
        yield len(targets)
        for target in targets:
            yield from target

    def _registers(self, puts: Mapping[int, Expression]) -> Iterator[int]:
        known = {number: expression for number, expression in puts.items() if self._place(number)}
        yield len(known)
        for number, expression in known.items():
            yield from self._place(number)
            alternatives = list(_alternatives(expression))
            yield len(alternatives)
            for alternative in alternatives:
                yield from self._expression(alternative)

    def _condition(self, puts: Mapping[int, Expression]) -> Iterator[int]:
        operation = puts.get(CC_OPERATION)
        if operation is None:
            yield _CONDITION_KEPT
            return
        bits = self._machine.comparisons.get(operation[1], 0) if operation[0] == CONSTANT else 0
        if not bits or CC_LEFT not in puts or CC_RIGHT not in puts:
            yield _NO_CONDITION
            return
        yield from (_CONDITION_OF, bits, *self._equal)
        yield from self._expression(puts[CC_LEFT])
        yield from self._expression(puts[CC_RIGHT])

    def _place(self, number: int) -> tuple[int, ...]:
        """Return whether a register is half of a vector register, and its number there; nothing for others."""
        if number in self._machine.general:
            return 0, number
        return (1, self._halves[number]) if number in self._halves else ()

    def _expression(self, expression: Expression) -> Iterator[int]:
        kind = expression[0]
        place = self._place(expression[1]) if kind == REGISTER else ()
        if place:
            yield from (_VECTOR if place[0] else _GENERAL, place[1], expression[2])
        elif kind in (CONSTANT, PC_RELATIVE, PAGE_RELATIVE):
            base = {CONSTANT: 0, PC_RELATIVE: AT, PAGE_RELATIVE: AT & ~0xFFF}[kind]
            yield from (_NUMBER, base + expression[1])
        elif kind == DIRECTED or expression[:2] == (REGISTER, DIRECTION):
            yield _DIRECTED
            for way in expression[1:] if kind == DIRECTED else ((CONSTANT, 1), (CONSTANT, -1)):
                yield from self._expression(way)
        elif kind == SCALED:
            yield _SUM
            yield from self._expression(expression[1])
            yield from (_NUMBER, GRANULES * expression[2])
        elif kind in _BINARY:
            yield _BINARY[kind]
            yield from self._expression(expression[1])
            yield from self._expression(expression[2])
        elif kind in _UNARY:
            yield _UNARY[kind]
            yield from self._expression(expression[1])
            yield from (int(word) for word in expression[2:])
        else:
            yield _NOTHING


def _alternatives(expression: Expression) -> Iterator[Expression]:
    if expression[0] == CHOICE:
        yield from _alternatives(expression[1])
        yield from _alternatives(expression[2])
    else:
        yield expression
