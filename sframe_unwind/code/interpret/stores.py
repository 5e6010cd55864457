"""Executes stores in abstract states."""

from __future__ import annotations

from sframe_unwind.code.decode.instruction import ANYTHING, REGISTER, Expression
from sframe_unwind.code.decode.machines import Machine
from sframe_unwind.code.interpret.expressions import SCATTERED, ReadConstant
from sframe_unwind.code.interpret.kept_constants import KeptConstants
from sframe_unwind.code.interpret.reach import has_reach
from sframe_unwind.code.interpret.stack_order import may_overlap, overlaps
from sframe_unwind.code.interpret.state import Frame, State
from sframe_unwind.code.interpret.values import (
    CFA,
    ENTRY,
    NUMBER,
    OTHER,
    REPLACED,
    SIGNED_BASE,
    STACK,
    STACK_BASE,
    SYMBOL,
    UNKNOWN,
    UNKNOWN_BASE,
    Slot,
    Value,
    is_open,
    is_scaled,
    on_stack,
)
from sframe_unwind.named_tuple import NamedTuple

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


class Stores(KeptConstants):
    """Executes stores of values, and of values that may have been stored.

    :param read_constant: reads literal pools.
    """

    def __init__(self, machine: Machine, frame: Frame, read_constant: ReadConstant) -> None:
        super().__init__(machine, frame, read_constant)
        self.has_replaced = False
        """Whether, since this was cleared, a value was stored over the return address."""
        self.exposes_frame = False
        """Whether, since this was cleared, an address in the frame was stored outside of it, or passed to a callee."""
        self.written: set[Written] = set()
        """The stores, since this was cleared, above the frame and through pointers that the function got."""
        self._return_slot = CFA, machine.ra_slot
        self._lowest_byte = _WORD - 1 if machine.big_endian else 0

    def _either(self, held: Value, stored: Value) -> Value:
        """Return what a slot may hold that a value may have been stored to."""
        merged = self._frame.merge(held, stored)
        if not self._may_be_address(merged):
            return UNKNOWN
        return self._reaches.with_reach(UNKNOWN_BASE, self._reaches.of(merged))

    def _scatter(self, value: Value, state: State) -> None:
        """Note a value that was stored at an unknown place, if it is an address of a saved register."""
        if self._reaches.leads_to_saved(value, state.slots, self._frame.is_saved):
            state.registers[SCATTERED] = self._frame.merge(state.registers.get(SCATTERED, OTHER), value)

    def _saved_at(self, address: Expression, place: Value, size: int, state: State) -> list[Slot]:
        """Return the slots that a store may overwrite, or certainly overwrites as part of the object of a pointer.

        Unrolled loops over an array on the stack go beyond its end, on paths that are never taken.
        """
        if has_reach(place):
            return self._reaches.overwritten(place, size, state.slots, self._frame.is_saved)
        if not on_stack(place[0]) or not state.slots:
            return []
        base, offset = place
        if state.moved or is_scaled(base):
            tops = state.tops
            reached = [slot for slot in state.slots if slot[0] != base and may_overlap(tops, place, size, slot)]
        else:
            reached = []
        if is_by_frame(address, self._frame):
            return reached
        return reached + [slot for slot in state.slots if slot[0] == base and offset - _WORD < slot[1] < offset + size]

    def _fill(self, expression: Expression, address: Value, size: Value, value: Value, state: State) -> None:
        """Overwrite a number of bytes that a register has.

        A store of unknown size is assumed to end within the object at its address, as a store with an index is.
        """
        self.exposes_frame |= self._may_be_address(value)
        self._note(address, max(size[1], _WORD) if size[0] == NUMBER else _WORD)
        self._keep(STACK if expression == ANYTHING else address, None, value, state)
        # What was copied may be a saved register.
        state.leaked |= expression == ANYTHING or (on_stack(address[0]) and is_open(value[0]))
        if expression != ANYTHING and not (on_stack(address[0]) or has_reach(address)):
            self._scatter(value, state)
            return
        is_unbounded = size[0] == UNKNOWN_BASE
        if not (size[0] < 0 or (size[0] == NUMBER and size[1] >= 0)):
            size = NUMBER, _WORD
        for slot, held in state.slots.items():
            if expression == ANYTHING or self._is_filled(slot, address, size, is_unbounded, state):
                state.slots[slot] = self._either(held, value)
        self._scatter(value, state)

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

    def _note(self, address: Value, size: int) -> None:
        """Note a store above the frame, or through a pointer that the function got."""
        base, offset = address
        if ENTRY <= base < SYMBOL:
            self.written.add(Written(base - ENTRY, offset, size))
        elif base == CFA and offset + size > 0:
            self.written.add(Written(self._frame.sp, offset, size))

    def _store(self, address: Value, size: int, value: Value, state: State, may_be_kept: bool) -> None:
        """Store a value.

        :param may_be_kept: the store may leave what was there.
        """
        slots = state.slots
        base, offset = address
        self._note(address, size)
        if value[0] in self._leaking:
            state.leaked |= is_open(base) or not (on_stack(base) or base == STACK_BASE)
        if not on_stack(base):
            self.exposes_frame |= self._may_be_address(value)
            if size >= _WORD:
                self._scatter(value, state)
            return
        state.moved |= is_scaled(base)
        if slots and (size != _WORD or offset % _WORD):
            for slot in [slot for slot in slots if slot[0] == base and offset - _WORD < slot[1] < offset + size]:
                if value[0] == UNKNOWN_BASE:
                    slots[slot] = self._either(slots[slot], value)  # stored on a condition
                elif size == 1 and offset - slot[1] == self._lowest_byte and self._may_be_address(slots[slot]):
                    slots[slot] = self._reaches.with_other_lowest_byte(slots[slot])
                elif size < _HALF_WORD:
                    slots[slot] = self._altered(slots[slot])
                else:
                    del slots[slot]
        if offset % _WORD:
            self._scatter(value, state)
        if size > _WORD and self._may_be_address(value):
            for at in range(-offset % _WORD, size - _WORD + 1, _WORD):
                slots[base, offset + at] = self._either(slots.get((base, offset + at), OTHER), value)
        if size != _WORD:
            return
        if may_be_kept and address in slots:
            value = self._either(slots[address], value)
        if not self._frame.is_followed(value[0]):
            old = slots.pop(address, None)
            if (old is not None and (old == self._frame.return_address or old[0] == SIGNED_BASE)) or (
                old == UNKNOWN and address == self._return_slot
            ):
                slots[address] = REPLACED
                self.has_replaced = True
        elif address in slots or len(slots) < _MAX_SLOTS:
            slots[address] = value
        else:
            state.leaked = True
            self._scatter(value, state)


def is_by_frame(address: Expression, frame: Frame) -> bool:
    """Return whether an address is that of the stack pointer or the frame pointer, plus a constant."""
    return address[0] == REGISTER and address[1] in (frame.sp, frame.fp)
