"""Changes abstract states by what callees may do: registers that they change, and stores in their callers' frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile

from sframe_unwind.code.decode.instruction import DIRECTION, REST
from sframe_unwind.code.decode.machines import Machine
from sframe_unwind.code.interpret.expressions import SCATTERED, ReadConstant
from sframe_unwind.code.interpret.reach import has_reach
from sframe_unwind.code.interpret.stack_order import is_above
from sframe_unwind.code.interpret.state import Frame, State
from sframe_unwind.code.interpret.stores import Stores, Written
from sframe_unwind.code.interpret.values import (
    CFA,
    CLOBBERED,
    OTHER,
    SIGNED,
    SIGNED_BY_B,
    UNKNOWN,
    UNKNOWN_BASE,
    Slot,
    Value,
    is_displaced,
    number,
    on_stack,
)

_WORD = 8


class Callees(Stores):
    """Executes what callees may do.

    :param read_constant: reads literal pools.
    """

    def __init__(self, machine: Machine, frame: Frame, read_constant: ReadConstant) -> None:
        super().__init__(machine, frame, read_constant)
        self._passing = frozenset((*machine.followed, REST, SCATTERED)) - machine.preserved

    def call(self, state: State, changed: frozenset[int] | None, inherited: frozenset[int] = frozenset()) -> None:
        """Change a state to the one after a call.

        :param changed: the registers that the callee may change; ``None``: those that the ABI permits.  The stack
            pointer and the caller's stack stay unchanged, except for the area that the ABI gives to the callee.
        :param inherited: the registers that it uses as arguments besides those of the ABI.
        """
        preserved, is_tracked = self._machine.preserved, self._frame.is_tracked
        registers = state.registers
        self._pass_addresses(state, self._passing | inherited if inherited else self._passing, self._frame.entry_sp)
        left = []
        for register, value in registers.items():
            base = value[0]
            if register == DIRECTION:
                registers[register] = number(1)
            elif register in preserved:
                if changed is not None and register in changed and register != self._frame.sp:
                    registers[register] = UNKNOWN
            elif register == self._frame.ra:
                registers[register] = OTHER
            elif not is_tracked(base):
                left.append(register)
            elif register != SCATTERED and (changed is None or register in changed):
                registers[register] = CLOBBERED
        for register in left:  # fewer registers make fewer steps where paths meet
            del registers[register]
        self._forget_by_callee(state)
        sp = registers[self._frame.sp]
        first, end = self._machine.callee_area
        for slot in state.slots:
            above = slot[1] - sp[1]
            if above < 0 or first <= above < end if slot[0] == sp[0] else not is_above(state.tops, slot, sp):
                state.slots[slot] = self._either(state.slots[slot], OTHER)

    def store_in_special(self, state: State) -> None:
        """Change a state by the stores of a callee with its own calling convention: it may use all registers."""
        passing = frozenset((*self._machine.general, SCATTERED)) - {self._frame.sp}
        self._pass_addresses(state, passing, self._frame.entry_sp)

    def system_call(self, state: State) -> None:
        """Change a state to the one after a system call, which may store through its arguments."""
        self._pass_addresses(state, frozenset((*self._machine.system_call_arguments, SCATTERED)))
        self._forget_by_callee(state)
        for register in self._machine.system_call_results:
            state.registers[register] = UNKNOWN

    def _pass_addresses(self, state: State, passing: frozenset[int], own: Value | None = None) -> None:
        """Let a callee overwrite the saved registers of which it may get an address, in a register or in memory.

        An address that was computed in a way that is not followed mostly is a number.  Code that aligns its stack keeps
        the stack pointer that it was entered with: on AMD64, the return address is there, but nobody stores there.

        :param passing: the registers that the callee gets.
        :param own: an address through which it does not store.
        """
        slots = state.slots
        addresses = list(self._passed(state, passing, own))
        self.exposes_frame |= bool(addresses)
        for address in addresses:
            self._expose(address, state)
        saved = [slot for slot, held in slots.items() if self._frame.is_saved(held)] if addresses else ()
        overwritten = set[Slot]()
        for base, offset in sorted(saved):
            slot = (base, offset)
            is_next = (base, offset - _WORD) in overwritten  # the object at an address may have several words
            if is_next or any(self._reaches.leads_to(value, slot) for value in addresses):
                overwritten.add(slot)
                slots[slot] = self._either(slots[slot], OTHER)

    def _passed(self, state: State, passing: frozenset[int], own: Value | None) -> Iterator[Value]:
        """Yield the addresses in the frame that a callee may get: in registers, and in the memory to which these point.

        What was allocated by a stack pointer that moved by a variable amount is apart from the rest of the frame.  So
        an address that is kept in the rest does not reach a callee that only gets addresses of what was allocated.
        Below the stack pointer is nothing for a callee; before calls of some functions, Go keeps the address of the
        frame there.  From the stack pointer on, a callee reads its arguments.
        """
        registers, may_be_address = state.registers, self._may_be_address
        values = [value for one, value in registers.items() if one in passing and may_be_address(value)]
        base, top = registers[self._frame.sp]
        left = {slot: held for slot, held in state.slots.items() if slot[0] != base or slot[1] >= top}
        bases = set[int]()
        if _is_apart(base):
            if any(map(may_be_address, left.values())):
                values += [left.pop(slot) for slot in self._stack_arguments(state)]
        else:
            bases.add(base)
        while True:
            for value in values:
                if value != own and (on_stack(value[0]) or self._reaches.is_limited(value)):
                    yield value
                    bases.update(one.base for one in self._reaches.of(value) or ())
                elif has_reach(value):
                    bases.add(UNKNOWN_BASE)
            are_apart = all(map(_is_apart, bases))
            readable = [slot for slot in left if not are_apart or slot[0] in bases or not _is_apart(slot[0])]
            if not readable:
                return
            values = [left.pop(slot) for slot in readable]

    def _stack_arguments(self, state: State) -> list[Slot]:
        """Return the slots that a callee may read by the stack pointer: its arguments, if they are on the stack.

        They end before the first saved register.  A copy of a value that is also elsewhere may be an argument: a
        function may pass its return address.
        """
        registers, slots, returns = state.registers, state.slots, {self._frame.return_address, SIGNED, SIGNED_BY_B}
        base, top = registers[self._frame.sp]
        kept = [value for register, value in registers.items() if register != self._frame.ra] + list(slots.values())

        def is_saved(value: Value) -> bool:
            if value[0] == CFA or not self._frame.is_saved(value):
                return False
            return sum(map(kept.count, returns if value in returns else (value,))) == 1

        above = sorted(slot for slot in slots if slot[0] == base and slot[1] >= top)
        return list(takewhile(lambda slot: not is_saved(slots[slot]), above))

    def holding(self, state: State) -> list[int]:
        """Return the registers that may hold an address in the frame, except the stack pointer."""
        may_be_address, sp = self._may_be_address, self._frame.sp
        return [one for one, value in state.registers.items() if one != sp and may_be_address(value)]

    def pointed(self, value: Value, state: State) -> Iterator[int | None]:
        """Yield the distances in bytes of slots from a place to which a value may point; ``None``: any distance."""
        reach = None if has_reach(value) and not self._reaches.is_limited(value) else self._reaches.of(value)
        if reach is None and state.slots:
            yield None
        for one in reach or ():
            for (base, offset), held in state.slots.items():
                if base == one.base and (on_stack(value[0]) or self._frame.is_saved(held)):
                    yield from {offset - one.first, offset - one.last}

    def store_in_callee(self, stores: Iterable[Written], state: State) -> bool:
        """Change a state by the stores of a callee above its frame, and through pointers that it gets.

        :returns: whether one is at a place, which is exactly known, where the caller's frame pointer is saved.
        """
        sp, is_of_fp = self._frame.sp, False
        for register, offset, size in stores:
            place = self._plus(
                state.registers.get(register, OTHER), offset - (self._frame.sp_at_return[1] if register == sp else 0)
            )
            self._note(place, size)
            if not self._may_be_address(place):
                continue
            self._keep(place, size, OTHER, state)
            for slot in self._reaches.overwritten(place, size, state.slots, self._frame.is_saved):
                is_of_fp |= on_stack(place[0]) and state.slots[slot] == self._frame.entry_fp
                state.slots[slot] = self._either(state.slots[slot], OTHER)
        return is_of_fp


def _is_apart(base: int) -> bool:
    """Return whether a base is that of the frame at a constant distance, or of what a stack pointer allocated."""
    return base == CFA or is_displaced(base)
