"""The values of registers and stack slots before an instruction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Callable

from sframe_unwind.code.decode.instruction import DIRECTION
from sframe_unwind.code.decode.machines import Machine
from sframe_unwind.code.interpret.reach import Reaches
from sframe_unwind.code.interpret.stack_order import (
    NO_TOPS,
    Bounds,
    Tops,
    highest,
    may_overlap,
    most,
    shared,
    weakened,
    with_top,
)
from sframe_unwind.code.interpret.values import (
    ALTERED_BASE,
    CFA,
    ENTRY,
    OTHER,
    RETURN_ADDRESS,
    RETURN_BASE,
    SIGNED_BASE,
    STACK_BASE,
    SYMBOL,
    UNKNOWN,
    UNKNOWN_BASE,
    Slot,
    Value,
    is_open,
    is_scaled,
    joined,
    number,
    plus,
    with_top_number,
)

_WORD = 8

Merge = Callable[[Value, Value], Value]


class State:
    """The registers by number, and the stack slots that hold values of interest.

    Missing registers and slots hold no value of interest: no path to this place has saved one there.
    """

    __slots__ = ("leaked", "moved", "registers", "slots", "tops")

    def __init__(self, registers: dict[int, Value], slots: dict[Slot, Value], leaked: bool = False) -> None:
        self.registers = registers
        self.slots = slots
        self.leaked = leaked
        """A register of interest was saved at an unknown place: a value loaded from there may be that register."""
        self.moved = False
        """Whether the stack pointer may have been at a variable distance from the CFA."""
        self.tops: Tops = NO_TOPS

    def may_hold(self, address: Value) -> bool:
        """Return whether a slot may be at an address that depends on vector lengths in another way.

        None is where the stack pointer has not been moved by an amount that is not constant.
        """
        return any(
            (is_scaled(slot[0]) or is_scaled(address[0])) and may_overlap(self.tops, address, _WORD, slot)
            for slot in self.slots
            if slot[0] != address[0]
        )

    def substitute(self, base: int, value: Value) -> None:
        """Replace the name of a stack pointer by its value, which is now known."""
        self.tops = with_top({**self.tops, base: value}, base, None)
        for register, known in self.registers.items():
            if known[0] == base:
                self.registers[register] = plus(value, known[1])
        for slot, known in list(self.slots.items()):
            if known[0] == base:
                self.slots[slot] = known = plus(value, known[1])
            if slot[0] == base:
                del self.slots[slot]
                self.slots[value[0], value[1] + slot[1]] = known

    def copy(self) -> State:
        """Return a copy that can be changed independently."""
        result = State(self.registers.copy(), self.slots.copy(), self.leaked)
        result.moved, result.tops = self.moved, self.tops
        return result


class Frame:
    """The common parts of the states of one machine: the state at the entry, and which values are of interest.

    :param also: further registers whose values at the entry are of interest.
    """

    def __init__(self, machine: Machine, also: Iterable[int] = ()) -> None:
        arch = machine.arch
        self.sp = arch.sp
        self.fp = arch.fp
        self.ra = arch.ra
        self.entry_sp: Value = (CFA, machine.sp_at_entry)
        self.sp_at_return: Value = (CFA, 0 if arch.ra is None else machine.sp_at_entry)
        self.entry_fp: Value = (ENTRY + arch.fp, 0)
        self.return_address = RETURN_ADDRESS if arch.ra is None else (ENTRY + arch.ra, 0)
        self.bounds = Bounds()
        self.reaches = Reaches()
        self._machine = machine
        self.also = frozenset(also)
        self._tracked = frozenset(
            (
                *(CFA, UNKNOWN_BASE, STACK_BASE, RETURN_BASE, SIGNED_BASE, ALTERED_BASE),
                *(self.entry_fp[0], self.return_address[0]),
            )
        )
        self._followed = self._tracked.union(ENTRY + number for number in self.also)

    def is_tracked(self, base: int) -> bool:
        """Return whether a value with this base may be, or lead to, a value that a rule has to find."""
        return base in self._tracked or base >= SYMBOL

    def is_followed(self, base: int) -> bool:
        """Return whether a value with this base is followed to the slots in which it is saved.

        Of the further registers, only unchanged copies are of interest: what is computed from one, or may be one, is
        none.
        """
        return base in self._followed or base >= SYMBOL

    def entry(self, pushed: int = 0, link: int | None = None) -> State:
        """Return the state at a function's entry.

        :param pushed: number of bytes on the stack in addition to those of the ABI; their contents are unknown.
        :param link: the register with the return address, if it is not the ABI's.
        """
        registers: dict[int, Value] = {register: (ENTRY + register, 0) for register in self._machine.general}
        registers.update({register: (ENTRY + register, 0) for register in self.also})  # also vector registers
        registers[DIRECTION] = number(1)
        top = self.entry_sp[1]
        registers[self.sp] = CFA, top - pushed
        slots: dict[Slot, Value] = {(CFA, offset): UNKNOWN for offset in range(top - pushed, top, 8)}
        if self._machine.ra_slot is not None:
            slots[CFA, self._machine.ra_slot] = RETURN_ADDRESS
        if link is not None and self.ra is not None:
            registers[self.ra], registers[link] = OTHER, self.return_address
        return State(registers, slots)

    def kept(self, state: State) -> set[int]:
        """Return the further registers that hold what they held at the entry."""
        return {register for register in self.also if state.registers.get(register) == (ENTRY + register, 0)}

    def is_entry(self, state: State) -> bool:
        """Return whether a function can be entered in a state: nothing of the previous frame is left."""
        registers = state.registers
        if registers[self.sp] != self.entry_sp or registers[self.fp] != self.entry_fp:
            return False
        if self.ra is not None:
            return registers[self.ra] == self.return_address
        return state.slots.get((CFA, self._machine.ra_slot or 0)) == self.return_address

    def may_be_entry(self, state: State) -> bool:
        """Return whether a function may be entered in a state: nothing that is known contradicts it."""
        registers = state.registers
        if self.ra is not None:
            return_address = registers[self.ra]
        else:
            slot = CFA, self._machine.ra_slot or 0
            # The change of the stack pointer is unknown, and so is the slot at its address.
            return_address = state.slots.get(slot, UNKNOWN)
        pairs = (
            (registers[self.sp], self.entry_sp),
            (registers[self.fp], self.entry_fp),
            (return_address, self.return_address),
        )
        return all(value == wanted or is_open(value[0]) for value, wanted in pairs)

    def merge(self, left: Value, right: Value) -> Value:
        """Return the knowledge about a value that is one of two."""
        if left == right:
            return left
        if left[0] == right[0] == STACK_BASE:
            return self.reaches.merged(STACK_BASE, left, right)
        if self.is_tracked(left[0]) or self.is_tracked(right[0]):
            return self.reaches.merged(UNKNOWN_BASE, left, right)
        return OTHER

    def join(self, state: State, other: State, address: int) -> bool:
        """Keep in a state only what another state at the same address agrees on; return whether that changed it."""
        merge: Merge = self.merge
        if state.moved or other.moved:
            merge = self._bounded_merge(state.tops, other.tops, joined(address)[0])
        changed = self._join_tops(state, other, address)
        changed |= self._join_registers(state.registers, other.registers, address, merge)
        changed |= self._join_slots(state.slots, other.slots, merge)
        if other.leaked and not state.leaked:
            state.leaked = changed = True
        return changed

    def _join_tops(self, state: State, other: State, address: int) -> bool:
        """Keep the knowledge that both states share about the order of stack pointers and about the present one."""
        mine, theirs = state.registers[self.sp], other.registers[self.sp]
        if mine == theirs and not (state.moved or other.moved):
            return False
        tops = state.tops
        common = shared(tops, other.tops)
        if mine != theirs:
            name = joined(address)
            if mine != name:
                common = with_top(common, name[0], highest((tops, mine), (other.tops, theirs), name[0]))
            elif name[0] in tops:
                common = with_top(common, name[0], None)
                top = weakened(tops, name[0], other.tops, theirs)
                if top is not None:
                    common[name[0]] = top
        changed = not state.moved or common != tops
        state.moved, state.tops = True, common
        return changed

    def _bounded_merge(self, mine: Tops, others: Tops, renewed: int) -> Merge:
        """Return a function that merges values that may become the stack pointer, and keeps their upper bounds."""
        bounds = self.bounds

        def merge(left: Value, right: Value) -> Value:
            merged = self.merge(left, right)
            if merged[0] not in (UNKNOWN_BASE, STACK_BASE):
                return merged
            one, other = bounds.of(left), bounds.of(right)
            if one and other:
                top = highest((mine, one), (others, other), renewed)
            else:
                # If it becomes the stack pointer, it is the address: the slot had another use before.
                tops, above = (mine, right == OTHER and one) if one else (others, left == OTHER and other)
                distance = most(tops, above, CFA) if above else None
                top = None if distance is None else (CFA, distance)
            return merged if top is None else with_top_number(merged, bounds.number(top))

        return merge

    def _join_registers(self, mine: dict[int, Value], others: dict[int, Value], address: int, merge: Merge) -> bool:
        if mine == others:
            return False
        changed = False
        for register, value in list(mine.items()):
            other = others.get(register, OTHER)
            if other != value:
                merged = joined(address) if register == self.sp else merge(value, other)
                if merged != value:
                    mine[register] = merged
                    changed = True
        for register, other in others.items():
            if register not in mine and self.is_tracked(other[0]):
                mine[register] = merge(OTHER, other)
                changed = True
        return changed

    @staticmethod
    def _join_slots(mine: dict[Slot, Value], others: dict[Slot, Value], merge: Merge) -> bool:
        if mine == others:
            return False
        changed = False
        for slot, value in list(mine.items()):
            other = others.get(slot)
            if other != value:
                merged = merge(value, OTHER if other is None else other)
                changed |= merged != value
                mine[slot] = merged
        for slot, other in others.items():
            if slot not in mine:
                mine[slot] = merge(OTHER, other)
                changed = True
        return changed
