"""Describes in words the code's judgement of a rule, and the instruction that caused it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Callable, Union

from sframe_unwind import unwind_rule
from sframe_unwind.code.decode.disassembly import Disassembler
from sframe_unwind.code.decode.instruction import HIGH
from sframe_unwind.code.decode.machines.base import ADDRESSES
from sframe_unwind.code.interpret.interpretation import Interpreter
from sframe_unwind.code.interpret.run import Run
from sframe_unwind.code.interpret.state import State
from sframe_unwind.code.interpret.values import (
    CFA,
    OTHER,
    SIGNED,
    SIGNED_BASE,
    SIGNED_BY_B,
    UNKNOWN,
    Slot,
    Value,
    length_count,
    on_stack,
    plus,
)
from sframe_unwind.code.interpret.walk import walk
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.report.notation import describe_register_rule
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule

Thing = Callable[[State], Union[Value, Sequence[Value]]]
"""Returns the value to examine in a state, or several."""

_MAX_STEPS = 5_000
"""Maximum number of instructions to examine for one explanation."""


class Origin(NamedTuple):
    """The instruction that gave a register or slot its value."""

    address: int
    text: str
    """The instruction in objdump's notation."""


class Explanation(NamedTuple):
    """One wrong value of a rule."""

    rule: str
    code: str
    origin: Origin | None


class Explainer:
    """Explains the findings in the functions of one file.

    :param relative: instructions refer to offsets in sections, as in the listing of an object file.
    """

    def __init__(self, interpreter: Interpreter, relative: bool = False) -> None:
        self._interpreter = interpreter
        self._relative = relative
        self._frame = interpreter.frame
        self._arch = interpreter.machine.arch
        self._disassembler = Disassembler(interpreter.machine)
        self._left = 0

    def explain(self, what: str, rule: UnwindRule, run: Run, block: int, pc: int, state: State) -> Explanation:
        """Explain a rule that is wrong before an instruction.

        :param what: ``cfa``, ``ra`` or ``fp``.
        :param block: start of the block with the instruction, in the run.
        """
        said, code, thing = {"cfa": self._cfa, "ra": self._ra, "fp": self._fp}[what](rule, state)
        address = self._origin(run, block, pc, thing)
        return Explanation(said, code, None if address is None else Origin(address, self._text(address)))

    # The rules of both sides.

    def _cfa(self, rule: UnwindRule, state: State) -> tuple[str, str, Thing]:
        assert rule.cfa is not None
        said = _place(rule.cfa, self._interpreter)
        base = rule.cfa.base
        registers = state.registers
        for number in (base, self._frame.sp, self._frame.fp, *sorted(registers)):
            value = registers.get(number, OTHER)
            lengths = length_count(value[0]) if on_stack(value[0]) else None
            if lengths is not None and number < HIGH:
                words = _place(RegisterRule(number, -value[1], False), self._interpreter)
                return said, f"CFA = {words}{vector_lengths(-lengths)}", _distances(number, base)
        for (slot_base, offset), value in state.slots.items():
            if value[0] == CFA and not value[1]:
                anchor = self._register_at(slot_base, state)
                if anchor is not None:
                    place = RegisterRule(anchor, offset - registers[anchor][1], True)
                    return said, f"CFA {_place(place, self._interpreter)}", _register(anchor)
        return said, "no register at a constant distance from the CFA", _register(base)

    def _register_at(self, base: int, state: State) -> int | None:
        """Return a register with the same base as a slot."""
        for number in (self._frame.fp, self._frame.sp):
            if state.registers[number][0] == base:
                return number
        return None

    def _ra(self, rule: UnwindRule, state: State) -> tuple[str, str, Thing]:
        said = self._saved(rule.ra, "unchanged") + (", signed" if rule.ra_signed else "")
        wanted = (self._frame.return_address, SIGNED, SIGNED_BY_B)
        found = self._find(wanted, state, self._frame.ra)
        if found is None:
            return said, "the return address is lost", self._thing(rule.ra, self._frame.ra)
        place, value = found
        code = "return address " + self._where(place) + (", signed" if value[0] == SIGNED_BASE else "")
        return said, code, self._thing(place, self._frame.ra)

    def _fp(self, rule: UnwindRule, state: State) -> tuple[str, str, Thing]:
        name = self._arch.register_name(self._frame.fp)
        said = self._saved(rule.fp, "unchanged")
        found = self._find((self._frame.entry_fp,), state, self._frame.fp)
        if found is None:
            return said, f"the caller's {name} is lost", self._thing(rule.fp, self._frame.fp)
        place, _ = found
        if place == RegisterRule(self._frame.fp, 0, False):
            return said, f"{name} unchanged", self._thing(rule.fp, self._frame.fp)
        return said, f"{name} {self._where(place)}", self._thing(place, self._frame.fp)

    def _find(self, wanted: tuple[Value, ...], state: State, first: int | None) -> tuple[RegisterRule, Value] | None:
        """Return a place with one of some values: the register that had it at the entry, a slot, or any register."""
        if first is not None and state.registers[first] in wanted:
            return RegisterRule(first, 0, False), state.registers[first]
        for (base, offset), value in state.slots.items():
            if value in wanted:
                if base == CFA:
                    return RegisterRule(unwind_rule.CFA, offset, True), value
                number = self._register_at(base, state)
                if number is not None:
                    return RegisterRule(number, offset - state.registers[number][1], True), value
        for number, value in sorted(state.registers.items()):
            if value in wanted and number < HIGH:
                return RegisterRule(number, 0, False), value
        return None

    def _saved(self, place: RegisterRule | None, otherwise: str) -> str:
        return otherwise if place is None else _place(place, self._interpreter)

    def _where(self, place: RegisterRule) -> str:
        words = _place(place, self._interpreter)
        return words if place.in_memory else f"in {words}"

    def _thing(self, place: RegisterRule | None, register: int | None) -> Thing:
        if place is not None and place.base == unwind_rule.CFA and place.in_memory:
            slot: Slot = (CFA, place.offset)
            return lambda state: state.slots.get(slot, OTHER)
        number = place.base if place is not None else register
        if place is not None and place.in_memory:
            return lambda state: _held(state, place)
        return _register(-1 if number is None else number)

    # The instruction that is the origin.

    def _origin(self, run: Run, block: int, pc: int, thing: Thing) -> int | None:
        """Return the address of the last instruction before another one that changed an examined value.

        :param thing: returns the examined value.
        """
        seen = {(block, pc)}
        waiting = [(block, pc)]
        found: list[int] = []
        self._left = _MAX_STEPS
        while waiting and self._left > 0:
            start, end = waiting.pop()
            change = self._last_change(run, start, end, thing)
            if change is not None:
                found.append(change)
                continue
            for source in run.sources.get(start, ()):
                before = self._state_before(run, *source)
                if before is not None and thing(run.states[start]) != thing(before):
                    found.append(source.pc)
                elif source not in seen:
                    seen.add(source)
                    waiting.append(source)
        # If paths have different ones, the nearest earlier instruction is taken.
        earlier = [address for address in found if address < pc]
        return max(earlier) if earlier else min(found, default=None)

    def _last_change(self, run: Run, start: int, end: int, thing: Thing) -> int | None:
        change, previous, previous_pc = None, thing(run.states[start]), None
        for pc, state in self._walk(run, start):
            now = thing(state)
            if now != previous and previous_pc is not None:
                change = previous_pc
            previous, previous_pc = now, pc
            if pc == end:
                return change
        return change

    def _state_before(self, run: Run, start: int, end: int) -> State | None:
        """Return the state before an instruction of a block; ``None``: the walk does not reach it."""
        return next((state for pc, state in self._walk(run, start) if pc == end), None)

    def _walk(self, run: Run, start: int) -> Iterator[tuple[int, State]]:
        for found in walk(self._interpreter, run, start):
            self._left -= 1
            yield found
            if self._left < 0:
                return

    def _text(self, address: int) -> str:
        sweep = self._interpreter.sweep_at(address)
        instruction = sweep.instruction(address)
        text = self._disassembler.text(sweep.bytes_at(address, instruction.size), address)
        return self._with_offset(text, address + instruction.size) if self._relative else text

    def _with_offset(self, text: str, end: int) -> str:
        """Return an instruction with the offset of each target in the target's section, in place of the address.

        :param end: address after the instruction.
        """
        offsets = {}
        for target in self._interpreter.machine.references(text, end):
            if (section := self._interpreter.image.section(target)) is not None:
                offsets[f"{target:#x}"] = f"{target - section.start:#x}"
        return ADDRESSES.sub(lambda found: offsets.get(found[0], found[0]), text) if offsets else text


def vector_lengths(count: int) -> str:
    """Return the text for a multiple of the vector length that is added to a place; empty for 0."""
    return f" {'+' if count > 0 else '-'} {abs(count)} * vg" if count else ""


def _register(number: int) -> Thing:
    return lambda state: state.registers.get(number, OTHER)


def _distances(*numbers: int) -> Thing:
    """Return the distances of registers from the CFA; those that are not constant count as equal.

    Where the rule of the code uses another register than the table's rule, this finds the instruction after which the
    register of the table has another distance, such as an `alloca`.
    """

    def distances(state: State) -> Sequence[Value]:
        values = (state.registers.get(number, OTHER) for number in numbers)
        return [one if on_stack(one[0]) and length_count(one[0]) is not None else OTHER for one in values]

    return distances


def _held(state: State, place: RegisterRule) -> Value:
    address = plus(state.registers.get(place.base, OTHER), place.offset)
    return state.slots.get(address, OTHER) if on_stack(address[0]) else UNKNOWN


def _place(place: RegisterRule, interpreter: Interpreter) -> str:
    return describe_register_rule(place, interpreter.machine.arch)
