"""The abstract values of registers and stack slots before an instruction, and how states of two paths are joined."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Callable

from sframe_unwind.code.decode.instruction import DIRECTION
from sframe_unwind.code.decode.machines import Machine
from sframe_unwind.code.interpret.constants import NO_CONSTANTS, Constants
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
    JUMP_ENTRY,
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
    with_top_number,
)

_WORD = 8

Merge = Callable[[Value, Value], Value]


class State:
    """The values of the registers, by DWARF number, and of stack slots.

    A value is of interest if a rule may need it: the CFA, the return address, the caller's frame pointer, and addresses
    in the stack.  Registers and slots that are missing here hold no such value on any path.
    """

    __slots__ = ("constants", "leaked", "moved", "registers", "slots", "tops")

    def __init__(self, registers: dict[int, Value], slots: dict[Slot, Value], leaked: bool = False) -> None:
        self.registers = registers
        self.slots = slots
        self.leaked = leaked
        """Whether a value of interest may be stored at an address that is not followed: a load may then return it."""
        self.moved = False
        """Whether the stack pointer may have been at a variable distance from the CFA."""
        self.tops: Tops = NO_TOPS
        """Upper bounds of stack pointers whose distance from the CFA varies."""
        self.constants: Constants = NO_CONSTANTS

    def word(self, address: Value) -> Value | None:
        """Return what a word on the stack is known to hold; ``None``: nothing is known."""
        held = self.slots.get(address)
        return self.constants.load(address) if held is None else held

    def may_hold(self, address: Value) -> bool:
        """Return whether a slot with another base may overlap the word at an address, by some vector length.

        No slot does, unless the stack pointer has moved by an amount that is not constant.
        """
        return any(
            (is_scaled(slot[0]) or is_scaled(address[0])) and may_overlap(self.tops, address, _WORD, slot)
            for slot in self.slots
            if slot[0] != address[0]
        )

    def substitute(self, base: int, value: Value, reaches: Reaches) -> None:
        """Replace the name of a stack pointer by its value, which is now known."""
        self.tops = with_top({**self.tops, base: value}, base, None)
        for register, known in self.registers.items():
            self.registers[register] = reaches.substituted(base, value, known)
        for slot, known in list(self.slots.items()):
            self.slots[slot] = known = reaches.substituted(base, value, known)
            if slot[0] == base:
                del self.slots[slot]
                self.slots[value[0], value[1] + slot[1]] = known

    def copy(self) -> State:
        """Return a copy that can be changed independently."""
        result = State(self.registers.copy(), self.slots.copy(), self.leaked)
        result.moved, result.tops, result.constants = self.moved, self.tops, self.constants
        return result


class Frame:
    """Makes, tests and joins the states of functions of one machine, and decides which values are of interest.

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
        preserved = (ENTRY + register for register in machine.preserved)
        self._saved = frozenset((SIGNED_BASE, self.entry_fp[0], self.return_address[0], *preserved))
        self._machine = machine
        self.also = frozenset(also)
        self._tracked = frozenset(
            (
                *(CFA, UNKNOWN_BASE, STACK_BASE, RETURN_BASE, SIGNED_BASE, ALTERED_BASE),
                *(self.entry_fp[0], self.return_address[0]),
            )
        )
        self._followed = self._tracked.union((JUMP_ENTRY,), (ENTRY + number for number in self.also))

    def is_tracked(self, base: int) -> bool:
        """Return whether a value with this base may be a value of interest, or the address at which one is saved."""
        return base in self._tracked or base >= SYMBOL

    def is_saved(self, value: Value) -> bool:
        """Return whether the value of a slot is that of a saved register, or the CFA itself, which code keeps there."""
        return value[0] in self._saved or value == (CFA, 0)

    def is_followed(self, base: int) -> bool:
        """Return whether a slot in which a value with this base is saved is kept in the state.

        Code without optimisation also keeps the targets of jumps by tables in its frame.
        Of the further registers (``also``), only unchanged copies are of interest, not values computed from them.
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
        """Return the further registers that have their values at the entry."""
        return {register for register in self.also if state.registers.get(register) == (ENTRY + register, 0)}

    def is_entry(self, state: State) -> bool:
        """Return whether a state is that at a function's entry: SP, frame pointer and return address are as there.

        A jump in such a state to another function is a tail call.
        """
        registers = state.registers
        if registers[self.sp] != self.entry_sp or registers[self.fp] != self.entry_fp:
            return False
        if self.ra is not None:
            return registers[self.ra] == self.return_address
        return state.slots.get((CFA, self._machine.ra_slot or 0)) == self.return_address

    def may_be_entry(self, state: State) -> bool:
        """Return whether a state may be that at a function's entry: no known value differs from the one there."""
        registers = state.registers
        if self.ra is not None:
            return_address = registers[self.ra]
        else:
            slot = CFA, self._machine.ra_slot or 0
            # Where the stack pointer is not known, neither is the contents of the slot to which it points.
            return_address = state.slots.get(slot, UNKNOWN)
        pairs = (
            (registers[self.sp], self.entry_sp),
            (registers[self.fp], self.entry_fp),
            (return_address, self.return_address),
        )
        return all(value == wanted or is_open(value[0]) for value, wanted in pairs)

    def merge(self, left: Value, right: Value) -> Value:
        """Return the abstract value that covers two values, for a place where two paths meet."""
        if left == right:
            return left
        if left[0] == right[0] == STACK_BASE:
            return self.reaches.merged(STACK_BASE, left, right)
        tracked, one, other = self._tracked, left[0], right[0]
        if one in tracked or other in tracked or one >= SYMBOL or other >= SYMBOL:  # as in `is_tracked`, without a call
            return self.reaches.merged(UNKNOWN_BASE, left, right)
        return OTHER

    def join(self, state: State, other: State, address: int) -> bool:
        """Change a state to one that covers both it and another state at the same address.

        :param address: the address at which the paths with these states meet.
        :returns: whether the state was changed.
        """
        merge: Merge = self.merge
        if state.moved or other.moved:
            merge = self._bounded_merge(state.tops, other.tops, joined(address)[0])
        changed = self._join_tops(state, other, address)
        changed |= self._join_registers(state.registers, other.registers, address, merge)
        changed |= self._join_slots(state.slots, other.slots, merge)
        if other.leaked and not state.leaked:
            state.leaked = changed = True
        if state.constants is not other.constants:
            shared = state.constants.shared(other.constants)
            changed |= shared != state.constants
            state.constants = shared
        return changed

    def _join_tops(self, state: State, other: State, address: int) -> bool:
        """Keep the upper bounds of stack pointers, also of the present one, that hold in both states."""
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
        """Return a function like :meth:`merge` that keeps upper bounds: a merged value may become the stack pointer.

        :param mine: the bounds of stack pointers in the first state, and ``others`` those in the second.
        :param renewed: the base that names another stack pointer from now on, so that no bound may refer to it.
        """
        bounds = self.bounds

        def merge(left: Value, right: Value) -> Value:
            merged = self.merge(left, right)
            if merged[0] not in (UNKNOWN_BASE, STACK_BASE):
                return merged
            one, other = bounds.of(left), bounds.of(right)
            if one and other:
                top = highest((mine, one), (others, other), renewed)
            else:
                # Only one value may be a stack address.  If the merged value becomes the stack pointer, it is that one.
                tops, above = (mine, right == OTHER and one) if one else (others, left == OTHER and other)
                distance = most(tops, above, CFA) if above else None
                top = None if distance is None else (CFA, distance)
            return merged if top is None else with_top_number(merged, bounds.number(top))

        return merge

    def _join_registers(self, mine: dict[int, Value], others: dict[int, Value], address: int, merge: Merge) -> bool:
        if mine == others:
            return False
        changed, find, tracked = {}, others.get, self._tracked
        for register, value in mine.items():
            other = find(register, OTHER)
            if other != value:
                merged = joined(address) if register == self.sp else merge(value, other)
                if merged != value:
                    changed[register] = merged
        for register, other in others.items():
            if register not in mine and (other[0] in tracked or other[0] >= SYMBOL):  # as in `is_tracked`
                changed[register] = merge(OTHER, other)
        mine.update(changed)
        return bool(changed)

    @staticmethod
    def _join_slots(mine: dict[Slot, Value], others: dict[Slot, Value], merge: Merge) -> bool:
        if mine == others:
            return False
        found, changed = {}, False
        for slot, value in mine.items():
            other = others.get(slot)
            if other != value:
                merged = merge(value, OTHER if other is None else other)
                if merged != value:
                    found[slot] = merged
                    changed = True
        mine.update(found)
        for slot, other in others.items():
            if slot not in mine:
                mine[slot] = merge(OTHER, other)
                changed = True
        return changed
