"""Compares the lifter's claims about an instruction with its effects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lab.code.witness.driver import AREA, AT, DATA, GRANULES, STACK, Step, word_at
from lab.code.witness.words import Words
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
    HIGH,
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
_TAGLESS = (1 << 56) - 1
_EQUAL = {"amd64": (0x40, 0x40), "aarch64": (1 << 30, 1 << 30), "s390x": (3, 0)}
"""The bits of the condition code that show that two operands are equal, and their values then."""


class Broken(NamedTuple):
    """A claim that does not hold."""

    what: str
    """The kind of claim."""
    detail: str


class Claims:
    """Checks the claims of one machine's lifter."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._big = machine.arch.byteorder == "big"
        # AArch64 ignores the highest byte of an address.
        self._address_bits = _TAGLESS if machine.max_size == 4 else _MASK
        self._equal_bits, self._equal = _EQUAL[machine.arch.name.partition("_")[0]]
        # In the driver's order.
        self._halves = {number: 2 * at for at, number in enumerate(machine.vex_vectors.values())}
        if not machine.big_endian:
            self._halves.update({number + HIGH: at + 1 for number, at in list(self._halves.items())})
        self.words = Words(machine, self._halves, self._address_bits, (self._equal_bits, self._equal))
        """The same claims for the driver, which checks most steps."""

    def broken(self, instruction: Instruction, steps: Sequence[Step], leaves_condition: bool) -> Iterator[Broken]:
        """Yield the claims about an instruction that do not hold in some steps.

        :param leaves_condition: whether the machine defines the condition code after the instruction.
        """
        if instruction.kind is Kind.STOP:
            return
        for step in steps:
            yield from self._target(instruction, step)
            ways = [list(self._on_way(way, step)) for way in self._ways(instruction, step)]
            yield from min(ways, key=len)
            if leaves_condition:
                yield from self._condition_code(dict(instruction.puts), step)

    def _ways(self, instruction: Instruction, step: Step) -> Iterator[Instruction]:
        """Yield the claimed writes on the ways to the place where the step continued."""
        for leaving in instruction.exits:
            if self._value(leaving.target, step) == step.pc:
                puts, stores = instruction.puts[: leaving.puts], instruction.stores[: leaving.stores]
                yield instruction._replace(puts=puts, stores=stores)
        yield instruction

    def _on_way(self, instruction: Instruction, step: Step) -> Iterator[Broken]:
        yield from self._registers(dict(instruction.puts), step)
        yield from self._memory(instruction, step)

    def _target(self, instruction: Instruction, step: Step) -> Iterator[Broken]:
        targets = [self._value(leaving.target, step) for leaving in instruction.exits]
        if instruction.kind in (Kind.NEXT, Kind.SYSTEM):
            targets.append(AT + instruction.size)
        elif instruction.kind in (Kind.JUMP, Kind.CALL) and instruction.target is not None:
            targets.append(self._value(instruction.target, step))
        elif instruction.kind is Kind.TRAP:
            targets.append(AT if step.signal == 5 else None)
        else:
            return
        if self._address_bits == _TAGLESS:  # what is jumped to may be extended by sign
            targets = [None if target is None else target & _TAGLESS for target in targets]
        if None not in targets and step.pc not in targets and step.pc & _TAGLESS not in targets:
            yield Broken("where execution goes on", f"{step.pc - AT:+#x}, not {targets}")

    def _registers(self, puts: dict[int, Expression], step: Step) -> Iterator[Broken]:
        for number in self._machine.general:
            yield from self._register(number, puts, step, step.before[number], step.after[number])
        for number, at in self._halves.items():
            yield from self._register(number, puts, step, step.vectors_before[at], step.vectors_after[at])

    def _register(
        self, number: int, puts: dict[int, Expression], step: Step, before: int, after: int
    ) -> Iterator[Broken]:
        expression = puts.get(number)
        if expression is None:
            if before != after:
                kind = "vector register" if number not in self._machine.general else "register"
                yield Broken(f"a {kind} is kept", f"register {number}: {before:#x}, {after:#x}")
            return
        for value in self._values(expression, step):
            if value is None or value == after:
                return
        yield Broken("a register's value", f"register {number}: {after:#x}, not {expression}")

    def _condition_code(self, puts: dict[int, Expression], step: Step) -> Iterator[Broken]:
        operation = puts.get(CC_OPERATION)
        if operation is None:
            if step.flags_before != step.flags_after:
                yield Broken("the condition code is kept", f"{step.flags_before:#x}, {step.flags_after:#x}")
            return
        bits = self._machine.comparisons.get(operation[1], 0) if operation[0] == CONSTANT else 0
        left, right = (self._value(puts[number], step) if number in puts else None for number in (CC_LEFT, CC_RIGHT))
        if bits and left is not None and right is not None:
            is_equal = not (left ^ right) & (1 << bits) - 1
            if is_equal != (step.flags_after & self._equal_bits == self._equal):
                yield Broken("what is compared", f"{left:#x}, {right:#x}: {step.flags_after:#x}")

    def _memory(self, instruction: Instruction, step: Step) -> Iterator[Broken]:
        allowed: set[int] = set()
        exact: dict[int, tuple[int, int]] = {}
        for address, length, expression in instruction.stores:
            place = self._value(address, step)
            size = length if isinstance(length, int) else self._value(length, step)
            if place is None or size is None:
                return  # anywhere
            size = min(size, 1 << 20)
            allowed.update((place + i) & self._address_bits for i in range(size))
            for known in [known for known in exact if place - 8 < known < place + size]:
                del exact[known]
            value = self._value(expression, step)
            if value is not None and size == 8:
                exact[place] = place, value
        outside = step.changed.keys() - allowed
        if outside:
            yield Broken("memory is kept", f"{min(outside):#x} and {len(outside) - 1} others; {instruction.stores}")
        for place, value in exact.values():
            if self._readable(place, 8) and self._after(place, step) != value:
                yield Broken("a stored value", f"{self._after(place, step):#x}, not {value:#x} at {place:#x}")

    def _after(self, place: int, step: Step) -> int:
        raw = bytes(step.changed.get(place + i, self._byte(place + i)) for i in range(8))
        return int.from_bytes(raw, "big" if self._big else "little")

    def _byte(self, address: int) -> int:
        word = word_at(address & ~7).to_bytes(8, "big" if self._big else "little")
        return word[address & 7]

    def _readable(self, address: int, size: int) -> bool:
        # All mapped memory is filled with the same pattern; the driver's own memory is below.
        return any(start <= address <= start + AREA - size for start in (STACK, DATA))

    def _values(self, expression: Expression, step: Step) -> Iterator[int | None]:
        if expression[0] == CHOICE:
            yield from self._values(expression[1], step)
            yield from self._values(expression[2], step)
        else:
            yield self._value(expression, step)

    def _value(self, expression: Expression, step: Step) -> int | None:
        """Return the value of an expression in the state before a step; ``None``: nothing is claimed about it."""
        found = self._number(expression, step)
        return None if found is None else found & _MASK

    def _number(self, expression: Expression, step: Step) -> int | None:
        kind = expression[0]
        if kind == REGISTER:
            number = expression[1]
            if number in self._machine.general:
                return step.before[number] + int(expression[2])
            if number == DIRECTION:
                return -1 if step.is_backward else 1
            at = self._halves.get(number)
            return None if at is None else step.vectors_before[at] + int(expression[2])
        if kind == CONSTANT:
            return int(expression[1])
        if kind == PC_RELATIVE:
            return AT + int(expression[1])
        if kind == PAGE_RELATIVE:
            return (AT & ~0xFFF) + int(expression[1])
        if kind == LOAD:
            return self._load(expression, step)
        if kind == DIRECTED:
            return self._value(expression[1 + step.is_backward], step)
        if kind == SCALED:
            start = self._value(expression[1], step)
            return None if start is None else start + GRANULES * int(expression[2])
        if kind not in (ADD, SUBTRACT, AND, SHIFT_LEFT, SHIFT_RIGHT, EXTEND):
            return None  # the tuples in expressions of other kinds need not be expressions
        operands = [self._value(operand, step) for operand in expression[1:] if isinstance(operand, tuple)]
        if None in operands:
            return None
        first = operands[0]
        assert first is not None
        if kind in (ADD, SUBTRACT):
            second = operands[1]
            assert second is not None
            return first + second if kind == ADD else first - second
        if kind == AND:
            return first & int(expression[2])
        if kind == SHIFT_LEFT:
            return first << int(expression[2])
        if kind == SHIFT_RIGHT:
            return (_extended(first, 64, True) if expression[3] else first) >> int(expression[2])
        return _extended(first, int(expression[2]), bool(expression[3]))

    def _load(self, expression: Expression, step: Step) -> int | None:
        address, size = self._value(expression[1], step), int(expression[2])
        if address is None or not self._readable(address, size):
            return None
        raw = bytes(self._byte(address + i) for i in range(size))
        return _extended(int.from_bytes(raw, "big" if self._big else "little"), 8 * size, bool(expression[3]))


def _extended(value: int, bits: int, signed: bool) -> int:
    low = value & (1 << bits) - 1
    return low - (1 << bits) if signed and low >> (bits - 1) else low
