"""Executes instructions in abstract states."""

from __future__ import annotations

from operator import itemgetter

from sframe_unwind.code.decode.instruction import (
    COMPUTED,
    INVERSE,
    LOAD,
    REGISTER,
    SCALED,
    SUBTRACT,
    Condition,
    Exit,
    Expression,
    Instruction,
)
from sframe_unwind.code.decode.instruction import UNKNOWN as UNKNOWN_KIND
from sframe_unwind.code.decode.machines import Machine
from sframe_unwind.code.interpret.callees import Callees
from sframe_unwind.code.interpret.expressions import ReadConstant
from sframe_unwind.code.interpret.reach import has_reach
from sframe_unwind.code.interpret.stack_order import with_top
from sframe_unwind.code.interpret.state import Frame, State
from sframe_unwind.code.interpret.stores import is_by_frame
from sframe_unwind.code.interpret.values import (
    OTHER,
    OTHER_BASE,
    STACK_BASE,
    UNKNOWN,
    UNKNOWN_BASE,
    Value,
    displaced,
    is_open,
    is_scaled,
    lost,
    on_stack,
    plus,
)

_WORD = 8
_FIRST = itemgetter(0)


class Evaluator(Callees):
    """Executes instructions.

    :param read_constant: reads literal pools.
    """

    def __init__(self, machine: Machine, frame: Frame, read_constant: ReadConstant) -> None:
        super().__init__(machine, frame, read_constant)
        self.rests_on_call = False
        """Whether, since this was cleared, the stack pointer was taken from a register other than the frame pointer, or
        such a register was the address from which it, the frame pointer or the return address was restored."""
        self._unwound = frame.sp, frame.fp, frame.ra

    def apply(self, instruction: Instruction, state: State, pc: int) -> None:
        """Execute an instruction: change the state before it to the state after it."""
        value, sp = self.value, self._frame.sp
        if len(instruction.puts) == 1 and not instruction.stores:
            ((register, expression),) = instruction.puts
            if register != sp:  # most instructions
                result = OTHER if expression[0] == COMPUTED else value(expression, state, pc)
                if result != OTHER or register in state.registers:
                    state.registers[register] = result
                    if expression[0] == LOAD and register in self._unwound and result[0] in self._leaking:
                        self.rests_on_call |= _is_by_other(expression[1], self._frame)
                return
        if not instruction.stores and sp not in map(_FIRST, instruction.puts):  # comparisons, mostly
            self._write(instruction, state, pc)
            return
        puts, source_of_sp = [], sp
        for register, expression in instruction.puts:
            kind = expression[0]
            result = OTHER if kind == COMPUTED else value(expression, state, pc)
            if register == sp and kind == SUBTRACT and result[0] == UNKNOWN_BASE:
                result = self._allocated(expression, result, state, pc)
            puts.append((register, result))
            if kind == LOAD and register in self._unwound and (register == sp or result[0] in self._leaking):
                self.rests_on_call |= _is_by_other(expression[1], self._frame)
            elif register == sp and kind in (REGISTER, SCALED):
                source = expression if kind == REGISTER else expression[1]
                self.rests_on_call |= source[1] not in (sp, self._frame.fp)
                source_of_sp = source[1] if kind == REGISTER and not source[2] else sp
        for address, size, expression in instruction.stores:
            if not isinstance(size, int):
                place, extent = value(address, state, pc), value(size, state, pc)
                if address[0] == SCALED and place[0] == STACK_BASE:
                    # The distance of the base from the CFA is not constant itself: assume any number of bytes there.
                    place, extent = value(address[1], state, pc), UNKNOWN
                self._fill(address, place, extent, value(expression, state, pc), state)
                continue
            place = value(address, state, pc)
            known = self._saved_at(address, place, size, state)
            stored = value(expression, state, pc)
            may_be_kept = expression[0] == UNKNOWN_KIND
            before = {slot: state.slots[slot] for slot in known}
            self._store(place, size, stored, state, may_be_kept)
            for slot, held in before.items():
                state.slots[slot] = self._either(held, stored)
            if has_reach(place) or is_open(place[0]):
                self._scatter(stored, state)
            self._keep(place, size, stored, state)
        if puts:
            self._put(puts, source_of_sp, state, pc)

    def _write(self, instruction: Instruction, state: State, pc: int) -> None:
        """Execute an instruction that writes registers other than the stack pointer, and no memory."""
        value, registers = self.value, state.registers
        results = [
            OTHER if expression[0] == COMPUTED else value(expression, state, pc) for _, expression in instruction.puts
        ]
        for (register, expression), result in zip(instruction.puts, results):
            if result != OTHER or register in registers:
                registers[register] = result
                if expression[0] == LOAD and register in self._unwound and result[0] in self._leaking:
                    self.rests_on_call |= _is_by_other(expression[1], self._frame)

    def _allocated(self, expression: Expression, result: Value, state: State, pc: int) -> Value:
        """Return the stack pointer after a size was subtracted from it that may have been computed from an address.

        Code computes sizes as distances of pointers.  A size is not negative.
        """
        left, size = (self.value(operand, state, pc) for operand in expression[1:])
        is_size = size[0] == UNKNOWN_BASE and not self._is_surely_address(size)
        return self._below(left) if is_size and on_stack(left[0]) else result

    def apply_until(self, leaving: Exit, instruction: Instruction, state: State, pc: int) -> State:
        """Return the state in which a conditional jump leaves an instruction."""
        state = state.copy()
        if leaving.puts < len(instruction.puts) or leaving.stores < len(instruction.stores):
            instruction = instruction._replace(
                puts=instruction.puts[: leaving.puts], stores=instruction.stores[: leaving.stores]
            )
        if instruction.puts or instruction.stores:
            self.apply(instruction, state, pc)
        return state

    def _put(self, puts: list[tuple[int, Value]], source_of_sp: int, state: State, pc: int) -> None:
        """Write registers.

        :param source_of_sp: the register whose value the stack pointer gets, if there is one.  Where the value gets a
            new name, it has that, too: what it points to is then apart from the rest of the frame.
        """
        registers = state.registers
        sp = self._frame.sp
        for register, value in puts:
            if register == sp and not on_stack(value[0]):
                value = registers[source_of_sp] = self._new_sp(value, state, pc)
            if register == sp and is_scaled(value[0]):
                state.moved = True
            if value == OTHER and register not in registers:
                continue
            registers[register] = value

    def _new_sp(self, value: Value, state: State, pc: int) -> Value:
        """Return a name for a new value of the stack pointer; make the state forget an older value with that name."""
        fresh = displaced(pc) if value[0] in (STACK_BASE, OTHER_BASE) else lost(pc)
        bounds, reaches = self._bounds, self._reaches
        top = OTHER if value == OTHER else bounds.of(value)  # outside of the frame: at or below no address in it
        if top is None:
            reaches.unbounded.add(fresh[0])
        for register, known in list(state.registers.items()):
            state.registers[register] = bounds.without(fresh[0], reaches.without(fresh[0], known))
        for slot, known in list(state.slots.items()):
            if slot[0] == fresh[0]:
                del state.slots[slot]
            else:
                state.slots[slot] = bounds.without(fresh[0], reaches.without(fresh[0], known))
        state.moved, state.tops = True, with_top(state.tops, fresh[0], top)
        return fresh

    def move_sp(self, by: int | None, state: State, pc: int) -> None:
        """Move the stack pointer up; ``None``: it becomes unknown."""
        sp = self._frame.sp
        self._put([(sp, UNKNOWN if by is None else plus(state.registers[sp], by))], sp, state, pc)

    def pass_on(self, instruction: Instruction, state: State, pc: int) -> bool:
        """Execute an instruction that continues at the next one; return whether its condition, if any, permits this."""
        exits = instruction.exits
        condition = exits[0].condition if len(exits) == 1 else None
        if condition is None:
            self.apply(instruction, state, pc)
            return True
        before = state
        if instruction.puts or instruction.stores:
            before = state.copy()
            self.apply(instruction, state, pc)
        relation, left, right, operation = condition
        inverse = tuple.__new__(Condition, (INVERSE[relation], left, right, operation))  # half the time of its call
        return self.holds(inverse, before, state, pc)


def _is_by_other(address: Expression, frame: Frame) -> bool:
    """Return whether an address is that of a register other than the stack pointer and the frame pointer."""
    return address[0] == REGISTER and not is_by_frame(address, frame)
