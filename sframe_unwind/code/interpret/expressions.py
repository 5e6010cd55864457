"""Evaluates the expressions of instructions in abstract states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable, Union

from sframe_unwind.code.decode.instruction import (
    ADD,
    AND,
    CHOICE,
    COMPUTED,
    CONSTANT,
    DIRECTED,
    DIRECTION,
    EXTEND,
    LOAD,
    LOWER,
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
    Expression,
)
from sframe_unwind.code.decode.instruction import UNKNOWN as UNKNOWN_KIND
from sframe_unwind.code.decode.machines import Machine
from sframe_unwind.code.image.jump_tables import Entries, Entry
from sframe_unwind.code.interpret.reach import ANYWHERE, has_reach, may_be_address
from sframe_unwind.code.interpret.signing import with_code, without_code
from sframe_unwind.code.interpret.state import Frame, State
from sframe_unwind.code.interpret.values import (
    ALTERED,
    ALTERED_BASE,
    CFA,
    CLOBBERED_BASE,
    ENTRY,
    JUMP_ENTRY,
    NUMBER,
    OTHER,
    OTHER_BASE,
    STACK_BASE,
    SYMBOL,
    TABLE_BASE,
    UNKNOWN,
    UNKNOWN_BASE,
    Value,
    is_open,
    is_stack_address,
    length_count,
    number,
    on_stack,
    plus,
    scaled,
    top_number,
    with_top_number,
)

ReadConstant = Callable[[int, int], Union[int, None]]
"""``(address, size in bytes)``: returns the unsigned number in read-only memory; ``None``: it is not known."""

_PAGE_MASK = ~0xFFF
_MASK = (1 << 64) - 1
_WORD = 8
_MIN_ADDRESS = 0x1000
"""Smaller constants are never taken for the address of a table."""
_MIN_KERNEL_ADDRESS = 1 << 30
"""The least distance from 0 of a kernel address, which is negative as a signed number."""
_BITS_OF_HALF = 32
SCATTERED = 3001
"""A pseudo register of the interpretation: the addresses of saved registers that were stored at an unknown place, or
outside of the frame."""
_LOW_HALF = (1 << 32) - 1


class Expressions:
    """Evaluates expressions.

    :param read_constant: reads literal pools.
    """

    _may_be_address = staticmethod(may_be_address)

    def __init__(self, machine: Machine, frame: Frame, read_constant: ReadConstant) -> None:
        self._machine = machine
        self._frame = frame
        self._read = read_constant
        self.entries = Entries()
        self._bounds = frame.bounds
        self._reaches = frame.reaches
        self._leaking = frame.entry_fp[0], frame.return_address[0]
        self.has_read = False
        """Whether, since this was cleared, a constant was read from memory."""

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
            if any(map(has_reach, values)):
                return self._reaches.computed(*values)
            return UNKNOWN if any(self._frame.is_tracked(base) for base, _ in values) else OTHER
        if kind == CHOICE:
            left, right = self.value(expression[1], state, pc), self.value(expression[2], state, pc)
            return self._frame.merge(left, right)
        if kind == DIRECTED:
            direction = state.registers.get(DIRECTION, OTHER)
            if direction in (number(1), number(-1)):
                return self.value(expression[1 if direction == number(1) else 2], state, pc)
            return self._frame.merge(self.value(expression[1], state, pc), self.value(expression[2], state, pc))
        if kind in (LOWER, PARTLY):
            value = self.value(expression[1], state, pc)
            # Code computes with the lower half as with a register of half the size.
            return self._altered(value) if kind == PARTLY or self._may_be_address(value) else OTHER
        if kind == SHIFT_RIGHT:
            base, offset = value = self.value(expression[1], state, pc)
            signed = offset if expression[3] else offset & _MASK
            if base == NUMBER:
                return number(signed >> expression[2])
            # An address without its lowest bits can be shifted back; with half of its bits, it is no address any more.
            if expression[2] >= _BITS_OF_HALF:
                return self._part(value)
            return self._reaches.shifted(value, expression[2]) if is_stack_address(base) else self._opaque(value)
        if kind == SIGN:
            value = self.value(expression[1], state, pc)
            code = with_code(value, expression[2], state, self._frame)
            return self._opaque(value) if code is None else code
        if kind == STRIP:
            return without_code(self.value(expression[1], state, pc), expression[2], state, self._frame)
        if kind == SCALED:
            return self._scaled(self.value(expression[1], state, pc), expression[2])
        if kind == UNKNOWN_KIND:
            return self._one_of([self.value(operand, state, pc) for operand in expression[1:]])
        return UNKNOWN

    def _one_of(self, values: Sequence[Value]) -> Value:
        """Return any value that, if it is an address in the frame, is near one of some values."""
        return self._indexed(UNKNOWN_BASE, *values) if any(map(self._may_be_address, values)) else UNKNOWN

    def _scaled(self, value: Value, count: int) -> Value:
        """Return what is known of a value plus some vector lengths."""
        found = scaled(value, count)
        if found is not None:
            return found
        return self._indexed(STACK_BASE, value) if is_stack_address(value[0]) else self._opaque(value)

    def _altered(self, value: Value) -> Value:
        """Return the abstract value of a value of which a part was overwritten."""
        if value[0] == ALTERED_BASE or has_reach(value):
            return UNKNOWN_BASE, value[1] if value[0] == ALTERED_BASE else ANYWHERE[1]
        if is_stack_address(value[0]):
            return ALTERED_BASE, ANYWHERE[1]
        # Unknown numbers are also rounded to a multiple in this way.
        return ALTERED if value[0] != UNKNOWN_BASE and self._frame.is_tracked(value[0]) else OTHER

    def _opaque(self, value: Value) -> Value:
        """Return the knowledge about a result that was computed from a value."""
        if self._is_surely_address(value):
            return ANYWHERE
        return self._reaches.computed(value) if has_reach(value) else self._part(value)

    def _is_surely_address(self, value: Value) -> bool:
        """Return whether a value is an address in the frame, or was computed from one in a way that is not followed.

        If the value is one of several, of which one is an address, it is mostly a number where it is computed with.
        """
        return is_stack_address(value[0]) or self._reaches.is_anywhere(value)

    def _part(self, value: Value) -> Value:
        """Return the knowledge about a result from which a value cannot be found again as an address."""
        return UNKNOWN if self._frame.is_tracked(value[0]) else OTHER

    def _plus(self, value: Value, offset: int) -> Value:
        """Return a value plus a number of bytes."""
        if not has_reach(value):
            return plus(value, offset)
        moved = self._reaches.moved(value, offset, offset)
        is_below = offset <= 0 and not self._reaches.is_signless(value)
        return with_top_number(moved, top_number(value)) if is_below else moved

    def _indexed(self, base: int, *values: Value) -> Value:
        """Return the sum of values of which one is an index: it stays in the object at the address."""
        return self._reaches.near(base, *map(self._reaches.of, values))

    def _load(self, address: Value, size: int, signed: bool, state: State) -> Value:
        base, offset = address
        if base == OTHER_BASE or ENTRY <= base < SYMBOL:
            return _outside(size, state)
        if size > _WORD:
            return self._load_words(address, size, state)
        if on_stack(base):
            if size != _WORD:
                return OTHER
            if offset % _WORD:
                return self._load_across(address, state)
            held = state.word(address)
            return self._absent(address, state) if held is None else held
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
            held = self._frame.merge(UNKNOWN, state.registers.get(SCATTERED, UNKNOWN))
            for value in self._may_load(address, state) if has_reach(address) else ():
                held = self._reaches.merged(UNKNOWN_BASE, held, value)
            return held
        return _outside(size, state)

    def _may_load(self, address: Value, state: State) -> list[Value]:
        return self._reaches.may_load(address, state.slots, self._frame.is_saved)

    def _absent(self, address: Value, state: State) -> Value:
        """Return what a word on the stack may be that is no slot."""
        stored = state.registers.get(SCATTERED)
        may_be_held = state.leaked or is_open(address[0]) or (state.moved and state.may_hold(address))
        return (UNKNOWN if may_be_held else OTHER) if stored is None else stored

    def _load_across(self, address: Value, state: State) -> Value:
        """Return what is known of a word that is not at a multiple of its size: it may have parts of two slots."""
        held = state.slots.get(address)
        if held is not None:
            return held
        base, offset = address
        slots = range(offset - _WORD + 1, offset + _WORD)
        if any(self._may_be_address(state.slots.get((base, at), OTHER)) for at in slots):
            return ANYWHERE
        return self._absent(address, state)

    def _load_words(self, address: Value, size: int, state: State) -> Value:
        """Return what any word may be that is loaded with others."""
        words = [self._load(plus(address, at), _WORD, False, state) for at in range(0, size, _WORD)]
        return self._one_of(words)

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
            are_both = self._may_be_address(left) and self._may_be_address(right)
            return self._reaches.computed(left, right) if are_both else self._indexed(UNKNOWN_BASE, left, right)
        if is_stack_address(base) != is_stack_address(right[0]):
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
            # A negative address is one when it is negated, or subtracted from the same number.
            if left[0] == NUMBER:
                is_known = is_count(left) and self._reaches.is_signless(right)
                return self._reaches.moved(right, left[1], left[1]) if is_known else ANYWHERE
            is_distance = self._may_be_address(left) and not self._is_surely_address(left)
            is_distance &= not self._reaches.is_signless(left)
            return self._part(right) if is_distance else self._reaches.distance(left, right)
        if UNKNOWN_BASE in (left[0], right[0]):
            return self._indexed(UNKNOWN_BASE, left)
        if is_stack_address(left[0]) and not self._frame.is_tracked(right[0]):
            return self._below(left)
        return self._opaque(left) if self._frame.is_tracked(left[0]) else self._opaque(right)

    def _and(self, value: Value, mask: int) -> Value:
        base, offset = value
        if base == NUMBER:
            return number(offset & mask)
        if mask == -1:
            return value
        if is_stack_address(base) and _is_alignment(mask):
            if base == CFA and -mask <= self._machine.kept_alignment:
                return base, offset & mask
            below = self._below(value, -mask - 1)
            # Whether the caller has aligned its stack is not known: the distance is constant for those that have.
            is_constant = base == CFA and -mask <= self._machine.stack_alignment
            return (UNKNOWN_BASE, below[1]) if is_constant else below
        if has_reach(value) and _is_alignment(mask) and mask >= -_LOW_HALF:  # the upper half alone is no address
            return self._reaches.moved(value, mask + 1, 0)
        return self._part(value) if 0 <= mask <= _LOW_HALF else self._opaque(value)

    def _below(self, value: Value, most: int = 0) -> Value:
        """Return an address in the stack at or below another: something was allocated, or the stack was aligned.

        :param most: maximum number of bytes by which it is below; 0: by an index.
        """
        top = top_number(value) if value[0] == STACK_BASE else self._bounds.number(value)
        below = self._reaches.moved(value, -most, 0) if most else self._indexed(STACK_BASE, value)
        return with_top_number((STACK_BASE, below[1]), top)

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
        address = self._reaches.before_shift(value, bits)
        if address is not None:
            return self._and(address, -1 << bits)
        if self._is_surely_address(value):
            return ANYWHERE
        return self._reaches.computed(value) if has_reach(value) else self._part(value)

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
        # Addresses have less than 64 bits.
        return self._opaque(value) if bits > _BITS_OF_HALF and self._may_be_address(value) else OTHER


def _outside(size: int, state: State) -> Value:
    """Return what may be loaded from memory outside of the frame."""
    if size < _WORD:
        return OTHER
    return state.registers.get(SCATTERED, UNKNOWN if state.leaked else OTHER)


def _is_alignment(mask: int) -> bool:
    """Return whether a mask rounds down to a multiple of a power of two."""
    return mask < 0 and not -mask & (-mask - 1)


def is_count(value: Value) -> bool:
    """Return whether a value is a constant that is not an address: where a file is loaded is not known."""
    return value[0] == NUMBER and -_MIN_ADDRESS < value[1] < _MIN_ADDRESS
