"""Executes instructions in abstract states."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Callable, NamedTuple, Union

from sframe_unwind.code.decode.instruction import (
    ADD,
    AND,
    ANYTHING,
    CHOICE,
    COMPUTED,
    CONSTANT,
    DIRECTED,
    DIRECTION,
    EXTEND,
    INVERSE,
    LOAD,
    MIXED,
    PAGE_RELATIVE,
    PARTLY,
    PC_RELATIVE,
    REGISTER,
    SCALED,
    SHIFT_LEFT,
    SHIFT_RIGHT,
    SIGN,
    STRIP,
    SUBTRACT,
    Condition,
    Exit,
    Expression,
    Instruction,
)
from sframe_unwind.code.decode.machines import Machine
from sframe_unwind.code.image.jump_tables import Entries, Entry
from sframe_unwind.code.interpret.reach import ANYWHERE, has_reach, indexed
from sframe_unwind.code.interpret.stack_order import is_above, may_overlap, overlaps, with_top
from sframe_unwind.code.interpret.state import Frame, State
from sframe_unwind.code.interpret.values import (
    ALTERED,
    ALTERED_BASE,
    CFA,
    CLOBBERED,
    CLOBBERED_BASE,
    ENTRY,
    JUMP_ENTRY,
    NUMBER,
    OTHER,
    OTHER_BASE,
    REPLACED,
    SIGNED,
    STACK_BASE,
    SYMBOL,
    TABLE_BASE,
    UNKNOWN,
    UNKNOWN_BASE,
    Slot,
    Value,
    displaced,
    is_open,
    is_scaled,
    length_count,
    lost,
    number,
    on_stack,
    plus,
    scaled,
    top_number,
    with_top_number,
)

ReadConstant = Callable[[int, int], Union[int, None]]
"""``(address, size in bytes)``: returns the unsigned number in read-only memory; ``None``: it is not known."""

BOUND = 3000
"""A pseudo register of the interpretation: the greatest value of the operand that was last compared."""

_PAGE_MASK = ~0xFFF
_MASK = (1 << 64) - 1
_WORD, _HALF_WORD = 8, 4
_MIN_ADDRESS = 0x1000
"""Smaller constants are never taken for the address of a table."""
_MIN_KERNEL_ADDRESS = 1 << 30
"""The least distance of kernel addresses from 0, as numbers with a sign; they are negative."""
_MAX_SLOTS = 256
_BITS_OF_BYTE = 8
_LOW_HALF = (1 << 32) - 1


class Written(NamedTuple):
    """A store of a function outside of its own frame."""

    register: int
    """The register that held the address at the entry; the stack pointer: the CFA."""
    offset: int
    """Distance of the store from that address in bytes."""
    size: int
    """Size in bytes."""


class Evaluator:
    """Evaluates the expressions of instructions.

    :param read_constant: reads literal pools.
    """

    def __init__(self, machine: Machine, frame: Frame, read_constant: ReadConstant) -> None:
        self._machine = machine
        self._frame = frame
        self._read = read_constant
        self.entries = Entries()
        self._bounds = frame.bounds
        self._reaches = frame.reaches
        self._leaking = frame.entry_fp[0], frame.return_address[0]
        self.rests_on_call = False
        """Whether, since this was cleared, the stack pointer was taken from a register other than the frame pointer."""
        self.has_replaced = False
        """Whether, since this was cleared, a value was stored over the return address."""
        self.has_read = False
        """Whether, since this was cleared, a constant was read from memory."""
        self.written: set[Written] = set()
        """The stores, since this was cleared, above the frame and through pointers that the function got."""
        self.compares_constants = False
        """Whether conditions that compare two small constants are decided; otherwise, they may hold or not."""

    def value(self, expression: Expression, state: State, pc: int) -> Value:
        """Return the value in a state of an expression of the instruction at ``pc``."""
        kind = expression[0]
        if kind == REGISTER:
            value = state.registers.get(expression[1], OTHER)
            return self._plus(value, expression[2]) if expression[2] else value
        if kind == COMPUTED:
            return OTHER
        if kind == CONSTANT:
            return number(expression[1])
        if kind == PC_RELATIVE:
            return number(pc + expression[1])
        if kind == PAGE_RELATIVE:
            return number((pc & _PAGE_MASK) + expression[1])
        if kind == LOAD:
            return self._load(self.value(expression[1], state, pc), expression[2], expression[3], state)
        if kind == ADD:
            return self._add(self.value(expression[1], state, pc), self.value(expression[2], state, pc))
        if kind == SUBTRACT:
            return self._subtract(self.value(expression[1], state, pc), self.value(expression[2], state, pc))
        if kind == AND:
            return self._and(self.value(expression[1], state, pc), expression[2])
        if kind == SHIFT_LEFT:
            return self._shift(self.value(expression[1], state, pc), expression[2])
        if kind == EXTEND:
            return self._extend(self.value(expression[1], state, pc), expression[2], expression[3])
        return self._rare(expression, state, pc)

    def _rare(self, expression: Expression, state: State, pc: int) -> Value:
        kind = expression[0]
        if kind == MIXED:
            values = [self.value(operand, state, pc) for operand in expression[1]]
            if any(map(self._is_surely_address, values)):
                return ANYWHERE
            return UNKNOWN if any(self._frame.is_tracked(base) for base, _ in values) else OTHER
        if kind == CHOICE:
            left, right = self.value(expression[1], state, pc), self.value(expression[2], state, pc)
            return self._frame.merge(left, right)
        if kind == DIRECTED:
            direction = state.registers.get(DIRECTION, OTHER)
            if direction in (number(1), number(-1)):
                return self.value(expression[1 if direction == number(1) else 2], state, pc)
            return self._frame.merge(self.value(expression[1], state, pc), self.value(expression[2], state, pc))
        if kind == PARTLY:
            return self._altered(self.value(expression[1], state, pc))
        if kind == SHIFT_RIGHT:
            base, offset = value = self.value(expression[1], state, pc)
            signed = offset if expression[3] else offset & _MASK
            if base == NUMBER:
                return number(signed >> expression[2])
            # Without its lowest bits, an address can be shifted back; without more of them, it is none.
            return self._opaque(value) if expression[2] < _BITS_OF_BYTE else self._part(value)
        if kind == SIGN:
            value = self.value(expression[1], state, pc)
            return SIGNED if value == self._frame.return_address else self._opaque(value)
        if kind == STRIP:
            value = self.value(expression[1], state, pc)
            if value == self._frame.return_address and expression[2]:
                return UNKNOWN
            return self._frame.return_address if value == SIGNED else value
        if kind == SCALED:
            return self._scaled(self.value(expression[1], state, pc), expression[2])
        return UNKNOWN

    def _scaled(self, value: Value, count: int) -> Value:
        """Return what is known of a value plus some vector lengths."""
        found = scaled(value, count)
        if found is not None:
            return found
        return self._indexed(STACK_BASE, value) if self._is_address(value[0]) else self._opaque(value)

    def _altered(self, value: Value) -> Value:
        """Return the knowledge about a value of which a part was overwritten."""
        if value[0] == ALTERED_BASE or has_reach(value):
            return UNKNOWN_BASE, value[1] if value[0] == ALTERED_BASE else ANYWHERE[1]
        if self._is_address(value[0]):
            return ALTERED_BASE, ANYWHERE[1]
        # Unknown numbers are also rounded to a multiple in this way.
        return ALTERED if value[0] != UNKNOWN_BASE and self._frame.is_tracked(value[0]) else OTHER

    def _opaque(self, value: Value) -> Value:
        """Return the knowledge about a result that was computed from a value."""
        return ANYWHERE if self._is_surely_address(value) else self._part(value)

    def _part(self, value: Value) -> Value:
        """Return the knowledge about a result from which a value cannot be found again as an address."""
        return UNKNOWN if self._frame.is_tracked(value[0]) else OTHER

    def _is_surely_address(self, value: Value) -> bool:
        """Return whether a value is an address in the frame, or was computed from one in a way that is not followed.

        One of several values, of which one is an address, mostly is a number where something is computed from it.
        """
        return self._is_address(value[0]) or (value[1] == ANYWHERE[1] and has_reach(value))

    def _may_be_address(self, value: Value) -> bool:
        return self._is_address(value[0]) or has_reach(value)

    def _plus(self, value: Value, offset: int) -> Value:
        """Return a value plus a number of bytes."""
        if not has_reach(value):
            return plus(value, offset)
        moved = self._reaches.moved(value, offset, offset)
        return with_top_number(moved, top_number(value)) if offset <= 0 else moved

    def _indexed(self, base: int, *values: Value) -> Value:
        """Return the sum of values of which one is an index: it stays in the object at the address."""
        reaches = [self._reaches.of(value) for value in values]
        return self._reaches.with_reach(base, None if None in reaches else indexed(sum(filter(None, reaches), ())))

    def _load(self, address: Value, size: int, signed: bool, state: State) -> Value:
        base, offset = address
        if base == OTHER_BASE or ENTRY <= base < SYMBOL:
            return UNKNOWN if state.leaked and size == _WORD else OTHER
        if on_stack(base):
            if size != _WORD:
                return OTHER
            held = state.slots.get(address)
            if held is None:
                may_be_held = state.leaked or is_open(base) or (state.moved and state.may_hold(address))
                return UNKNOWN if may_be_held else OTHER
            return held
        if base == TABLE_BASE:
            return JUMP_ENTRY, self.entries.number(Entry(offset, size, signed))
        if base == JUMP_ENTRY and self.entries[offset].base is not None:
            # The index was read from another table.
            return JUMP_ENTRY, self.entries.number(Entry(self.entries[offset].base or 0, size, signed))
        if base == NUMBER:
            found = self._read(offset & _MASK, size)
            self.has_read = True
            if found is not None:
                return number(found - (1 << 8 * size) if signed and found >> (8 * size - 1) else found)
        if base in (UNKNOWN_BASE, STACK_BASE) and size == _WORD:
            held = UNKNOWN
            for value in self._reaches.may_load(address, state.slots, self._leaking) if has_reach(address) else ():
                held = self._reaches.merged(UNKNOWN_BASE, held, value)
            return held
        return UNKNOWN if state.leaked and size == _WORD else OTHER

    def _add(self, left: Value, right: Value) -> Value:
        if left[0] == NUMBER:
            left, right = right, left
        base = left[0]
        if right[0] == NUMBER:
            if not -_MIN_KERNEL_ADDRESS < right[1] < _MIN_ADDRESS and self._is_index(base):
                return TABLE_BASE, right[1]
            if base == OTHER_BASE:
                return OTHER
            if base == JUMP_ENTRY:
                entry = self.entries[left[1]]
                if entry.base is None:
                    return JUMP_ENTRY, self.entries.number(entry._replace(base=right[1]))
                return OTHER
            return self._plus(left, right[1])
        if base < 0 or right[0] < 0:
            length, other = (left, right) if base < 0 else (right, left)
            return plus(self._scaled(other, length_count(length[0]) or 0), length[1])
        if UNKNOWN_BASE in (base, right[0]):
            return self._indexed(UNKNOWN_BASE, left, right)
        if self._is_address(base) != self._is_address(right[0]):
            is_index = not (self._frame.is_tracked(base) and self._frame.is_tracked(right[0]))
            return self._indexed(STACK_BASE if is_index else UNKNOWN_BASE, left, right)
        return self._opaque(left) if self._frame.is_tracked(base) else self._opaque(right)

    def _is_index(self, base: int) -> bool:
        """Return whether a value may be the index of a table: it is a number, or an argument."""
        return base in (OTHER_BASE, CLOBBERED_BASE) or (ENTRY <= base < SYMBOL and not self._frame.is_tracked(base))

    def _subtract(self, left: Value, right: Value) -> Value:
        if right[0] == NUMBER:
            return self._plus(left, -right[1])
        if left[0] == right[0] and left[0] not in (OTHER_BASE, UNKNOWN_BASE, STACK_BASE, TABLE_BASE, JUMP_ENTRY):
            return number(left[1] - right[1])
        if right[0] < 0:
            return plus(self._scaled(left, -(length_count(right[0]) or 0)), -right[1])
        if self._may_be_address(right):
            return ANYWHERE if left[0] == NUMBER else self._part(right)  # a negative address is one when it is negated
        if UNKNOWN_BASE in (left[0], right[0]):
            return self._indexed(UNKNOWN_BASE, left)
        if self._is_address(left[0]) and not self._frame.is_tracked(right[0]):
            return self._below(left)
        return self._opaque(left) if self._frame.is_tracked(left[0]) else self._opaque(right)

    @staticmethod
    def _is_address(base: int) -> bool:
        return base in (CFA, STACK_BASE) or base >= SYMBOL

    def _and(self, value: Value, mask: int) -> Value:
        base, offset = value
        if base == NUMBER:
            return number(offset & mask)
        if mask == -1:
            return value
        if self._is_address(base) and _is_alignment(mask):
            if base == CFA and -mask <= self._machine.stack_alignment:
                return base, offset & mask
            return self._below(value, -mask - 1)
        if has_reach(value) and _is_alignment(mask):
            return self._reaches.moved(value, mask + 1, 0)
        return self._part(value) if 0 <= mask <= _LOW_HALF else self._opaque(value)

    def _below(self, value: Value, most: int = 0) -> Value:
        """Return an address in the stack at or below another: something was allocated, or the stack was aligned.

        :param most: maximum number of bytes by which it is below; 0: by an index.
        """
        top = top_number(value) if value[0] == STACK_BASE else self._bounds.number(value)
        return with_top_number((STACK_BASE, self._reaches.moved(value, -most, 0)[1]), top)

    def _shift(self, value: Value, bits: int) -> Value:
        base, offset = value
        if base == NUMBER:
            return number(offset << bits)
        if base < 0 and bits < _WORD:
            return scaled(number(offset << bits), (length_count(base) or 0) << bits) or OTHER
        if base == JUMP_ENTRY:
            entry = self.entries[offset]
            if entry.base is None and bits < 8:
                return JUMP_ENTRY, self.entries.number(entry._replace(shift=entry.shift + bits))
        return ANYWHERE if self._may_be_address(value) else OTHER

    def _extend(self, value: Value, bits: int, signed: bool) -> Value:
        base, offset = value
        if base == NUMBER:
            low = offset & (1 << bits) - 1
            return NUMBER, low - (1 << bits) if signed and low >> (bits - 1) else low
        if base == JUMP_ENTRY:
            entry = self.entries[offset]
            if entry.base is None and not entry.shift and 8 * entry.size <= bits:
                exact = 8 * entry.size == bits
                return JUMP_ENTRY, self.entries.number(entry._replace(signed=signed if exact else entry.signed))
        return OTHER

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
                    # By a stack pointer whose own distance from the CFA is not constant: anywhere near it.
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
        """Return a name for the new stack pointer; the value that the name denoted before becomes unreachable."""
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
        """Overwrite a number of bytes that a register has.

        An unknown number of bytes is assumed to end within the object at the address, like other stores whose
        addresses have an unknown part.
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
                    slots[slot] = UNKNOWN  # stored on a condition
                elif size < _HALF_WORD:
                    slots[slot] = self._altered(slots[slot])
                else:
                    del slots[slot]
        if size != _WORD:
            return
        if not self._frame.is_followed(value[0]):
            old = slots.pop(address, None)
            if old in (self._frame.return_address, SIGNED):
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
            pointer and the caller's stack stay unchanged, except what the ABI gives to the callee.
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
        if self.compares_constants and condition.operation is not None and _is_count(left) and _is_count(right):
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


def _is_alignment(mask: int) -> bool:
    """Return whether a mask rounds down to a multiple of a power of two."""
    return mask < 0 and not -mask & (-mask - 1)


def _is_count(value: Value) -> bool:
    """Return whether a value is a constant that is not an address: where a file is loaded is not known."""
    return value[0] == NUMBER and -_MIN_ADDRESS < value[1] < _MIN_ADDRESS


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
