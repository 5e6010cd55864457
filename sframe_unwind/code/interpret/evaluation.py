"""Executes instructions in abstract states."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sframe_unwind.code.decode.instruction import (
    ANYTHING,
    COMPUTED,
    DIRECTION,
    INVERSE,
    REGISTER,
    SCALED,
    Condition,
    Exit,
    Expression,
    Instruction,
)
from sframe_unwind.code.decode.machines import Machine
from sframe_unwind.code.interpret.expressions import Expressions, ReadConstant, is_count
from sframe_unwind.code.interpret.reach import has_reach
from sframe_unwind.code.interpret.stack_order import is_above, may_overlap, overlaps, with_top
from sframe_unwind.code.interpret.state import Frame, State
from sframe_unwind.code.interpret.values import (
    CFA,
    CLOBBERED,
    ENTRY,
    NUMBER,
    OTHER,
    OTHER_BASE,
    REPLACED,
    SIGNED,
    SIGNED_BY_B,
    STACK_BASE,
    SYMBOL,
    UNKNOWN,
    UNKNOWN_BASE,
    Slot,
    Value,
    displaced,
    is_open,
    is_scaled,
    lost,
    number,
    on_stack,
    plus,
)

BOUND = 3000
"""A pseudo register of the interpretation: the greatest value of the operand that was last compared."""

_WORD, _HALF_WORD = 8, 4
_MAX_SLOTS = 256


class Written(NamedTuple):
    """A store of a function outside of its own frame."""

    register: int
    """The register that held the address at the entry; the stack pointer: the CFA."""
    offset: int
    """Distance of the store from that address in bytes."""
    size: int
    """Size in bytes."""


class Evaluator(Expressions):
    """Executes instructions.

    :param read_constant: reads literal pools.
    """

    def __init__(self, machine: Machine, frame: Frame, read_constant: ReadConstant) -> None:
        super().__init__(machine, frame, read_constant)
        self.rests_on_call = False
        """Whether, since this was cleared, the stack pointer was taken from a register other than the frame pointer."""
        self.has_replaced = False
        """Whether, since this was cleared, a value was stored over the return address."""
        self.written: set[Written] = set()
        """The stores, since this was cleared, above the frame and through pointers that the function got."""
        self.compares_constants = False
        """Whether conditions that compare two small constants are decided; otherwise, they may hold or not."""

    def apply(self, instruction: Instruction, state: State, pc: int) -> None:
        """Execute an instruction: change the state before it to the state after it."""
        value, sp = self.value, self._frame.sp
        if len(instruction.puts) == 1 and not instruction.stores:
            ((register, expression),) = instruction.puts
            if register != sp:  # most instructions
                result = OTHER if expression[0] == COMPUTED else value(expression, state, pc)
                if result != OTHER or register in state.registers:
                    state.registers[register] = result
                return
        puts = []
        for register, expression in instruction.puts:
            kind = expression[0]
            puts.append((register, OTHER if kind == COMPUTED else value(expression, state, pc)))
            if register == sp and kind in (REGISTER, SCALED):
                source = expression if kind == REGISTER else expression[1]
                self.rests_on_call |= source[1] not in (sp, self._frame.fp)
        for address, size, expression in instruction.stores:
            if not isinstance(size, int):
                place, extent = value(address, state, pc), value(size, state, pc)
                if address[0] == SCALED and place[0] == STACK_BASE:
                    # The distance of the base from the CFA is not constant itself: assume any number of bytes there.
                    place, extent = value(address[1], state, pc), UNKNOWN
                self._fill(address, place, extent, state)
                continue
            place = value(address, state, pc)
            known = self._saved_at(address, place, size, state)
            self._store(place, size, value(expression, state, pc), state)
            for slot in known:
                state.slots[slot] = UNKNOWN
        if puts:
            self._put(puts, state, pc)

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

    def _put(self, puts: list[tuple[int, Value]], state: State, pc: int) -> None:
        registers = state.registers
        sp = self._frame.sp
        for register, value in puts:
            if register == sp and not on_stack(value[0]):
                value = self._new_sp(value, state, pc)
            if register == sp and is_scaled(value[0]):
                state.moved = True
            if value == OTHER and register not in registers:
                continue
            registers[register] = value

    def _new_sp(self, value: Value, state: State, pc: int) -> Value:
        """Return a name for a new value of the stack pointer; make the state forget an older value with that name."""
        fresh = displaced(pc) if value[0] in (STACK_BASE, OTHER_BASE) else lost(pc)
        bounds, reaches = self._bounds, self._reaches
        top = bounds.of(value)
        for register, known in list(state.registers.items()):
            state.registers[register] = bounds.without(fresh[0], reaches.without(fresh[0], known))
        for slot, known in list(state.slots.items()):
            if slot[0] == fresh[0]:
                del state.slots[slot]
            else:
                state.slots[slot] = bounds.without(fresh[0], reaches.without(fresh[0], known))
        state.moved, state.tops = True, with_top(state.tops, fresh[0], top)
        return fresh

    def _saved_at(self, address: Expression, place: Value, size: int, state: State) -> list[Slot]:
        """Return the slots that a store may overwrite, or certainly overwrites as part of the object of a pointer.

        Unrolled loops over an array on the stack go beyond its end, on paths that are never taken.
        """
        if has_reach(place):
            return [slot for slot in state.slots if self._reaches.overlaps(place, size, slot)]
        if not on_stack(place[0]) or not state.slots:
            return []
        base, offset = place
        if state.moved or is_scaled(base):
            tops = state.tops
            reached = [slot for slot in state.slots if slot[0] != base and may_overlap(tops, place, size, slot)]
        else:
            reached = []
        if self._is_by_frame(address):
            return reached
        return reached + [slot for slot in state.slots if slot[0] == base and offset - _WORD < slot[1] < offset + size]

    def _fill(self, expression: Expression, address: Value, size: Value, state: State) -> None:
        """Mark the slots as unknown that a store may overwrite whose size is an expression.

        A store of unknown size is assumed to end within the object at its address, as a store with an index is.
        """
        if expression == ANYTHING:
            state.leaked = True
        elif not (on_stack(address[0]) or has_reach(address)):
            return
        is_unbounded = size[0] == UNKNOWN_BASE
        if not (size[0] < 0 or (size[0] == NUMBER and size[1] >= 0)):
            size = NUMBER, _WORD
        for slot in state.slots:
            if expression == ANYTHING or self._is_filled(slot, address, size, is_unbounded, state):
                state.slots[slot] = UNKNOWN

    def _is_filled(self, slot: Slot, address: Value, size: Value, is_unbounded: bool, state: State) -> bool:
        """Return whether a store of a number of bytes, or of vector lengths, may overwrite a slot."""
        base, offset = address
        if has_reach(address):
            return is_unbounded or self._reaches.overlaps(address, size[1], slot)
        is_reached = overlaps(address, size, slot)
        if slot[0] == base:
            is_near = offset - _WORD < slot[1] < offset + size[1] if is_reached is None else is_reached
            return is_unbounded or is_near
        if is_reached is None:
            return may_overlap(state.tops, address, size[1], slot)
        return is_unbounded or is_reached

    def _is_by_frame(self, address: Expression) -> bool:
        return address[0] == REGISTER and address[1] in (self._frame.sp, self._frame.fp)

    def _store(self, address: Value, size: int, value: Value, state: State) -> None:
        slots = state.slots
        base, offset = address
        if ENTRY <= base < SYMBOL:
            self.written.add(Written(base - ENTRY, offset, size))
        elif base == CFA and offset + size > 0:
            self.written.add(Written(self._frame.sp, offset, size))
        if value[0] in self._leaking:
            state.leaked |= is_open(base) or not (on_stack(base) or base == STACK_BASE)
        if not on_stack(base):
            return
        state.moved |= is_scaled(base)
        if slots and (size != _WORD or offset % _WORD):
            for slot in [slot for slot in slots if slot[0] == base and offset - _WORD < slot[1] < offset + size]:
                if value[0] == UNKNOWN_BASE:
                    slots[slot] = UNKNOWN  # the store depends on a condition
                elif size < _HALF_WORD:
                    slots[slot] = self._altered(slots[slot])
                else:
                    del slots[slot]
        if size != _WORD:
            return
        if not self._frame.is_followed(value[0]):
            old = slots.pop(address, None)
            if old in (self._frame.return_address, SIGNED, SIGNED_BY_B):
                slots[address] = REPLACED
                self.has_replaced = True
        elif len(slots) < _MAX_SLOTS:
            slots[address] = value
        else:
            state.leaked = True

    def system_call(self, state: State) -> None:
        """Change a state to the one after a system call."""
        for register in self._machine.system_call_results:
            state.registers[register] = UNKNOWN

    def call(self, state: State, changed: frozenset[int] | None) -> None:
        """Change a state to the one after a call.

        :param changed: the registers that the callee may change; ``None``: those that the ABI permits.  The stack
            pointer and the caller's stack stay unchanged, except for the area that the ABI gives to the callee.
        """
        preserved, is_tracked = self._machine.preserved, self._frame.is_tracked
        registers = state.registers
        for register, (base, _) in registers.items():
            if register == DIRECTION:
                registers[register] = number(1)
            elif register in preserved:
                if changed is not None and register in changed and register != self._frame.sp:
                    registers[register] = UNKNOWN
            elif register == self._frame.ra or not is_tracked(base):
                registers[register] = OTHER
            elif changed is None or register in changed:
                registers[register] = CLOBBERED
        sp = registers[self._frame.sp]
        first, end = self._machine.callee_area
        for slot in state.slots:
            above = slot[1] - sp[1]
            if above < 0 or first <= above < end if slot[0] == sp[0] else not is_above(state.tops, slot, sp):
                state.slots[slot] = UNKNOWN

    def store_in_callee(self, stores: Iterable[Written], state: State) -> None:
        """Change a state by the stores of a callee above its frame, and through pointers that it gets."""
        sp = self._frame.sp
        for register, offset, size in stores:
            place = plus(
                state.registers.get(register, OTHER), offset - (self._frame.sp_at_return[1] if register == sp else 0)
            )
            for slot in state.slots if on_stack(place[0]) else ():
                if slot[0] == place[0] and place[1] - _WORD < slot[1] < place[1] + size:
                    state.slots[slot] = UNKNOWN

    def move_sp(self, by: int | None, state: State, pc: int) -> None:
        """Move the stack pointer up; ``None``: it becomes unknown."""
        sp = self._frame.sp
        self._put([(sp, UNKNOWN if by is None else plus(state.registers[sp], by))], state, pc)

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
        return self.holds(Condition(INVERSE[relation], left, right, operation), before, state, pc)

    def holds(self, condition: Condition | None, before: State, after: State, pc: int) -> bool:
        """Return whether a condition can hold; if so, record its consequences in the state after the instruction."""
        if condition is None:
            return True
        if not self._is_possible(condition, before, after, pc):
            return False
        bound = self._bound(condition, before, pc)
        if bound is not None:
            after.registers[BOUND] = (NUMBER, bound)
        return True

    def _is_possible(self, condition: Condition, before: State, after: State, pc: int) -> bool:
        """Return whether a condition can hold; if so, replace the stack pointer by the value that follows from it."""
        if condition.relation not in ("==", "!=") or not self._compares(condition, before, pc, equality=True):
            return True
        left, right = self.value(condition.left, before, pc), self.value(condition.right, before, pc)
        if self.compares_constants and condition.operation is not None and is_count(left) and is_count(right):
            _, operation = self.value(condition.operation, before, pc)
            is_equal = not (left[1] ^ right[1]) & (1 << self._machine.comparisons[operation]) - 1
            return is_equal == (condition.relation == "==")
        # Loops that probe the stack compare the stack pointer.  Other comparisons may be of values that were loaded
        # from the stack, where a call may have changed them.
        if before.registers[self._frame.sp] not in (left, right):
            return True
        if left[0] == right[0] and on_stack(left[0]):
            return (left[1] == right[1]) == (condition.relation == "==")
        if condition.relation == "==":
            if left[0] >= SYMBOL and is_open(left[0]) and right[0] == CFA:
                _substitute(after, left[0], (CFA, right[1] - left[1]))
            elif right[0] >= SYMBOL and is_open(right[0]) and left[0] == CFA:
                _substitute(after, right[0], (CFA, left[1] - right[1]))
        return True

    def _bound(self, condition: Condition, state: State, pc: int) -> int | None:
        """Return the greatest value that a condition permits for its operand; ``None``: it has no limit."""
        relation = condition.relation
        if relation not in ("<", "<=") or not self._compares(condition, state, pc, equality=False):
            return None
        base, limit = self.value(condition.right, state, pc)
        return limit - (relation == "<") if base == NUMBER and limit >= 0 else None

    def _compares(self, condition: Condition, state: State, pc: int, equality: bool) -> bool:
        if condition.operation is None:
            return True
        wanted = self._machine.comparisons if equality else self._machine.unsigned_comparisons
        base, operation = self.value(condition.operation, state, pc)
        return base == NUMBER and operation in wanted


def _substitute(state: State, base: int, value: Value) -> None:
    """Replace a name by its value, which is now known."""
    state.tops = with_top({**state.tops, base: value}, base, None)
    for register, known in state.registers.items():
        if known[0] == base:
            state.registers[register] = plus(value, known[1])
    for slot, known in list(state.slots.items()):
        if known[0] == base:
            state.slots[slot] = known = plus(value, known[1])
        if slot[0] == base:
            del state.slots[slot]
            state.slots[value[0], value[1] + slot[1]] = known
