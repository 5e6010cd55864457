"""Follows the calls of a function."""

from __future__ import annotations

from collections.abc import Iterator

from sframe_unwind.code.decode.instruction import Instruction
from sframe_unwind.code.image.not_returning import is_not_returning
from sframe_unwind.code.image.ranges import CodeRange
from sframe_unwind.code.interpret.effects import Effects
from sframe_unwind.code.interpret.ends import Ends
from sframe_unwind.code.interpret.program import Program
from sframe_unwind.code.interpret.run import Passed
from sframe_unwind.code.interpret.state import State
from sframe_unwind.code.interpret.values import NUMBER, OTHER, UNKNOWN, plus
from sframe_unwind.named_tuple import NamedTuple

_MASK = (1 << 64) - 1
_REACH_OF_CALLEE = 1 << 16
"""Maximum distance in bytes from a pointer at which the stores of a callee through it are taken into account."""


class Way(NamedTuple):
    """Where a call leads."""

    target: int
    state: State
    after_call: bool = False
    """The target is the instruction after a call that may not return."""


class Calls:
    """The calls of one function.

    :param effects: finds the registers that called functions of the file may change; ``None``: callees are assumed to
        keep the ABI.
    :param ends: gets the calls that may leave the function.
    """

    def __init__(self, program: Program, function: CodeRange, effects: Effects | None, ends: Ends) -> None:
        self._all = program
        self._evaluator = program.evaluator
        self._frame = program.frame
        self._image = program.image
        self._function = function
        self._effects = effects
        self._ends = ends
        self.called: set[int] = set()
        self.passed: set[Passed] = set()
        self._preserved = program.machine.preserved - {program.frame.sp}
        self._general = frozenset(program.machine.general) - {program.frame.sp}
        self.after_ends: dict[int, State] = {}
        """The code after calls that do not return, with the state as if they did, because tables describe this code."""
        self.catches = False
        """Whether an exception that passes through a call may be caught."""

    def ways(self, pc: int, instruction: Instruction, state: State, is_certain: bool) -> Iterator[Way]:
        """Follow a call, and yield where it leads.

        :param is_certain: whether the call is certainly code, not data.
        """
        target = self._evaluator.value(instruction.target or (), state, pc) if instruction.target else OTHER
        following = pc + instruction.size
        name = self._image.external_call(pc, instruction.size)
        address = target[1] & _MASK if target[0] == NUMBER else None
        if name is None and address == following:  # position-independent code finds its own address this way
            self._evaluator.apply(instruction, state, pc)
            yield Way(following, state)
            return
        ra = self._all.machine.arch.ra
        if ra is not None and instruction.link not in (None, ra):
            yield self._with_other_link(pc, address if name is None else None, instruction, state)
            return
        called = address if name is None else None
        is_end = is_not_returning(name) if name is not None else address in self._all.not_returning
        changed = None
        if self._effects is not None and called is not None and not is_end:
            changed = self._effects.changed(called)
        inherited: frozenset[int] = frozenset()
        if called is not None:
            holding = self._evaluator.holding(state)
            if holding:
                self.passed.update(self._pointers(called, holding, state))
            if called in self._all.storing:
                self._ends.loses_fp |= self._evaluator.store_in_callee(self._all.storing[called], state)
            kept = self._preserved.intersection(holding)
            if kept:
                inherited = frozenset(one for one in kept if self._all.inherited.reads(called, one))
        self._evaluator.call(state, changed, inherited)
        if called in self._all.changing_fp:
            state.registers[self._frame.fp] = UNKNOWN
            self._ends.loses_fp = True
        if called in self._all.moving_sp:
            self._evaluator.move_sp(self._all.moving_sp[called], state, pc)
        for pad in self._all.landing_pads(following - 1):
            self.catches = True
            yield Way(pad.address, self._popped(state, pad.popped))
        if called is not None:
            self.called.add(called)
            # The effects of a called part are not followed.  It may leave the function, as in a retpoline.
            self._ends.returns |= self._function.start < called < self._function.end
        sweep = self._all.sweep_at(pc)
        after = sweep.after_padding(following)
        if not sweep.function.start <= after < sweep.function.end:
            return  # a call at the end does not return
        if is_end:
            if is_certain:
                self.after_ends[after] = state
        else:
            yield Way(following, state, after_call=called not in self._all.coming_back)

    def leave(self, target: int, state: State) -> None:
        """Follow a jump that leaves for another function, which returns to the caller."""
        if not self._frame.is_entry(state):
            return
        self.passed.update(self._pointers(target, self._evaluator.holding(state), state))
        state.registers[self._frame.sp] = self._frame.sp_at_return
        self._evaluator.store_in_callee(self._all.storing.get(target, ()), state)
        self._ends.changes_fp |= target in self._all.changing_fp
        if target in self._all.moving_sp:
            by = self._all.moving_sp[target]
            self._ends.stack_pointers_at_return.add(UNKNOWN if by is None else plus(self._frame.sp_at_return, by))

    def _pointers(self, called: int, holding: list[int], state: State) -> Iterator[Passed]:
        """Yield the pointers in registers by which the callee may overwrite a slot whose value is known.

        :param holding: the registers that may hold an address in the frame.
        """
        for number in self._general.intersection(holding):
            for distance in self._evaluator.pointed(state.registers[number], state):
                if distance is None or abs(distance) <= _REACH_OF_CALLEE:
                    yield Passed(called, number, distance)

    def _with_other_link(self, pc: int, address: int | None, instruction: Instruction, state: State) -> Way:
        """Follow a call that leaves its return address in another register than the ABI's; return where it leads.

        If the target is in the same function, the call jumps over constants, and the register then points to them.
        Otherwise, it calls a function with a special calling convention, such as ``__fentry__``, which changes only the
        registers of that convention.
        """
        self._evaluator.apply(instruction, state, pc)
        if address is not None and self._function.start <= address < self._function.end:
            return Way(address, state)
        self._evaluator.store_in_special(state)
        for register in self._all.machine.own_convention:
            state.registers[register] = UNKNOWN
        return Way(pc + instruction.size, state)

    def _popped(self, state: State, size: int) -> State:
        """Return a state with so many bytes removed from the stack."""
        if not size:
            return state
        state = state.copy()
        state.registers[self._frame.sp] = plus(state.registers[self._frame.sp], size)
        return state
