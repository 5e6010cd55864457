"""What registers and stack slots hold before an instruction."""

from __future__ import annotations

from collections.abc import Iterable

from sframe_unwind.code.machines import Machine
from sframe_unwind.code.values import (
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
    Value,
    is_open,
    joined,
)

Slot = tuple[int, int]
"""Base and offset in bytes of the address of eight bytes on the stack."""


class State:
    """Registers by number, and the stack slots that hold something of interest.

    A register that is missing, and a slot that is missing, hold nothing of interest: no path to here has saved
    anything there.
    """

    __slots__ = ("leaked", "registers", "slots")

    def __init__(self, registers: dict[int, Value], slots: dict[Slot, Value], leaked: bool = False) -> None:
        self.registers = registers
        self.slots = slots
        self.leaked = leaked
        """A register of interest was saved where it cannot be found: what is loaded from there may be it."""

    def copy(self) -> State:
        """Return a state that can be changed by itself."""
        return State(self.registers.copy(), self.slots.copy(), self.leaked)


class Frame:
    """What the states of one machine have in common: the entry's, and which values are of interest.

    :param also: registers whose values at the entry are of interest too.
    """

    def __init__(self, machine: Machine, also: Iterable[int] = ()) -> None:
        arch = machine.arch
        self.sp = arch.sp
        self.fp = arch.fp
        self.ra = arch.ra
        self.entry_sp: Value = (CFA, machine.sp_at_entry)
        self.entry_fp: Value = (ENTRY + arch.fp, 0)
        self.return_address = RETURN_ADDRESS if arch.ra is None else (ENTRY + arch.ra, 0)
        self._machine = machine
        self._tracked = frozenset(
            (
                *(CFA, UNKNOWN_BASE, STACK_BASE, RETURN_BASE, SIGNED_BASE, self.entry_fp[0], self.return_address[0]),
                *(ENTRY + number for number in also),
            )
        )

    def is_tracked(self, base: int) -> bool:
        """Return whether a value with this base may be, or lead to, what a rule has to find."""
        return base in self._tracked or base >= SYMBOL

    def entry(self, pushed: int = 0) -> State:
        """Return the state at a function's entry.

        :param pushed: bytes that are on the stack beside what the ABI wants; what they hold is not known.
        """
        registers: dict[int, Value] = {number: (ENTRY + number, 0) for number in self._machine.general}
        top = self.entry_sp[1]
        registers[self.sp] = CFA, top - pushed
        slots: dict[Slot, Value] = {(CFA, offset): UNKNOWN for offset in range(top - pushed, top, 8)}
        if self._machine.ra_slot is not None:
            slots[CFA, self._machine.ra_slot] = RETURN_ADDRESS
        return State(registers, slots)

    def is_entry(self, state: State) -> bool:
        """Return whether a function can be entered in a state: nothing is left of the frame that was there."""
        registers = state.registers
        if registers[self.sp] != self.entry_sp or registers[self.fp] != self.entry_fp:
            return False
        if self.ra is not None:
            return registers[self.ra] == self.return_address
        return state.slots.get((CFA, self._machine.ra_slot or 0)) == self.return_address

    def may_be_entry(self, state: State) -> bool:
        """Return whether nothing that is known of a state speaks against entering a function in it."""
        registers = state.registers
        if self.ra is not None:
            return_address = registers[self.ra]
        else:
            slot = CFA, self._machine.ra_slot or 0
            # What has become of the stack pointer is not known, so neither is which slot it is at.
            return_address = state.slots.get(slot, UNKNOWN)
        pairs = (
            (registers[self.sp], self.entry_sp),
            (registers[self.fp], self.entry_fp),
            (return_address, self.return_address),
        )
        return all(value == wanted or is_open(value[0]) for value, wanted in pairs)

    def merge(self, left: Value, right: Value) -> Value:
        """Return what is known of a value that is one of two."""
        if left == right:
            return left
        return UNKNOWN if self.is_tracked(left[0]) or self.is_tracked(right[0]) else OTHER

    def join(self, state: State, other: State, address: int) -> bool:
        """Keep in a state what another, that reaches the same address, agrees on; return whether that changed it."""
        changed = self._join_registers(state.registers, other.registers, address)
        changed |= self._join_slots(state.slots, other.slots)
        if other.leaked and not state.leaked:
            state.leaked = changed = True
        return changed

    def _join_registers(self, mine: dict[int, Value], others: dict[int, Value], address: int) -> bool:
        if mine == others:
            return False
        changed = False
        for number, value in list(mine.items()):
            other = others.get(number, OTHER)
            if other != value:
                merged = joined(address) if number == self.sp else self.merge(value, other)
                if merged != value:
                    mine[number] = merged
                    changed = True
        for number, other in others.items():
            if number not in mine and self.is_tracked(other[0]):
                mine[number] = UNKNOWN
                changed = True
        return changed

    def _join_slots(self, mine: dict[Slot, Value], others: dict[Slot, Value]) -> bool:
        if mine == others:
            return False
        changed = False
        for slot, value in list(mine.items()):
            if value != UNKNOWN and others.get(slot) != value:
                mine[slot] = UNKNOWN
                changed = True
        for slot in others:
            if slot not in mine:
                mine[slot] = UNKNOWN
                changed = True
        return changed
