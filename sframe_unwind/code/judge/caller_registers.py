"""Finds the places of the caller's callee-saved registers in a function, as far as its machine code proves them.

There are two kinds of proof: a stack slot holds the value that the register had at the function's entry, or the
register has not been changed since then.  Both rely on the ABI: a function that is called, or that has parts elsewhere
(a landing pad, a cold part), restores what it changes, and nothing writes to a slot in which a register is saved.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property

from sframe_unwind.code.decode.disassembly import Disassembler
from sframe_unwind.code.decode.instruction import Instruction, Kind
from sframe_unwind.code.image.ranges import CodeRange
from sframe_unwind.code.interpret.interpretation import Interpreter
from sframe_unwind.code.interpret.run import Run
from sframe_unwind.code.interpret.state import State
from sframe_unwind.code.interpret.values import CFA, ENTRY, NUMBER
from sframe_unwind.code.interpret.walk import walk
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind_rule import RegisterRule, saved_at_cfa

_OPERANDS = re.compile(r"%([fv])(\d+)")
"""Matches floating-point and vector registers in objdump's notation for s390x."""


class _Ends(NamedTuple):
    """The places at which a function returns to its caller."""

    any: bool
    """There is at least one."""
    restored: frozenset[int]
    """The registers that have their values of the entry again at all of these places."""


class CallerRegisters:
    """The caller's registers in one interpreted function.

    :param numbers: DWARF numbers of the callee-saved registers; the interpreter follows the general registers of them.
    """

    def __init__(self, interpreter: Interpreter, run: Run, function: CodeRange, numbers: Iterable[int]) -> None:
        self._interpreter = interpreter
        self._run = run
        self._function = function
        general = frozenset(interpreter.machine.general)
        self._general = tuple(number for number in numbers if number in general)
        self._floating = tuple(number for number in numbers if number not in general)

    def at(self, state: State, is_cfa_known: bool) -> dict[int, RegisterRule | None]:
        """Return the proved places of the caller's registers before an instruction; ``None``: unchanged.

        :param state: the state before the instruction.
        :param is_cfa_known: the code proves that the CFA is the one of the rule for the instruction.
        """
        if not self._is_understood:
            return {}
        found: dict[int, RegisterRule | None] = {}
        for number in self._general:
            slot = self._slot(number, state)
            if slot is not None:
                if is_cfa_known and number in self._ends.restored:
                    found[number] = saved_at_cfa(slot)
            elif state.registers.get(number) == (ENTRY + number, 0) and self._keeps(number):
                found[number] = None
        found.update(dict.fromkeys(self._untouched_floating))
        return found

    def _keeps(self, number: int) -> bool:
        """Return whether a register is really unchanged that is so on all followed paths, and has no slot.

        A path that was not followed can lead back from a landing pad or a cold part.  If the function changes the
        register anywhere, one of its ends must show that it need not be restored from a slot here.
        """
        return number not in self._written or (self._ends.any and number in self._ends.restored)

    def _slot(self, number: int, state: State) -> int | None:
        """Return the offset from the CFA of the slot in which a register is saved; ``None``: there is none.

        Slots below the stack pointer do not count: a signal handler may overwrite them.
        """
        base, top = state.registers[self._interpreter.frame.sp]
        wanted = ENTRY + number, 0
        slots = (slot[1] for slot, value in state.slots.items() if value == wanted and slot[0] == CFA)
        return next((offset for offset in slots if base != CFA or offset >= top), None)

    def _visited(self) -> Iterator[tuple[int, Instruction, State]]:
        for block in self._run.states:
            sweep = self._interpreter.sweep_at(block)
            for at, state in walk(self._interpreter, self._run, block):
                yield at, sweep.instruction(at), state

    @cached_property
    def _is_understood(self) -> bool:
        """Whether all jumps of the function and all effects of its instructions are known."""
        run, sweep = self._run, self._interpreter.sweeps.sweep(self._function)
        if not run.certain or sweep.executed:
            return False
        if any(not instruction.is_whole for instruction in sweep.instructions.values()):
            return False
        return all(instruction.size and instruction.kind is not Kind.STOP for _, instruction, _ in self._visited())

    @cached_property
    def _written(self) -> frozenset[int]:
        """The registers that any instruction of the function writes."""
        sweep = self._interpreter.sweeps.sweep(self._function)
        return frozenset(
            number for instruction in sweep.instructions.values() for number, _ in instruction.puts if number >= 0
        )

    @cached_property
    def _ends(self) -> _Ends:
        restored, ends = set(self._general), 0
        for at, instruction, state in self._visited():
            if instruction.kind is Kind.RETURN or self._is_tail_call(at, instruction, state):
                ends += 1
                restored -= {number for number in restored if state.registers.get(number) != (ENTRY + number, 0)}
        return _Ends(ends > 0, frozenset(restored))

    def _is_tail_call(self, at: int, instruction: Instruction, state: State) -> bool:
        """Return whether an instruction leaves the function for another one after the frame has been removed."""
        if instruction.kind is not Kind.JUMP or instruction.target is None:
            return False
        base, address = self._interpreter.evaluator.value(instruction.target, state, at)
        is_inside = base == NUMBER and self._function.start <= address < self._function.end
        return not is_inside and self._interpreter.frame.is_entry(state)

    @cached_property
    def _untouched_floating(self) -> tuple[int, ...]:
        """The floating-point registers that no instruction of the function names."""
        if not self._floating:
            return ()
        machine = self._interpreter.machine
        sweep, disassembler = self._interpreter.sweeps.sweep(self._function), Disassembler(machine)
        named: set[tuple[str, str]] = set()
        for at, instruction in sweep.instructions.items():
            text = disassembler.text(sweep.bytes_at(at, instruction.size), at)
            if text.startswith("."):
                return ()  # it cannot be disassembled
            named.update(_OPERANDS.findall(text))
        if any(kind == "v" for kind, _ in named):
            return ()  # vector registers contain the floating-point registers
        # An operand of 16 bytes is in the named register and in the next but one.
        touched = {f"f{int(number) + more}" for _, number in named for more in (0, 2)}
        names = machine.arch.register_names
        return tuple(number for number in self._floating if names[number] not in touched)
