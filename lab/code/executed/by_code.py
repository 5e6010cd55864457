"""Compares rows that the machine code of planted functions gives with executions; the tables are hidden from it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from lab.code.executed.judge import Entered, Judge
from lab.code.executed.linked import linked
from lab.code.executed.stub import Stopped, Stub
from lab.code.executed.verdicts import RUNS, SEED
from lab.code.from_code import DIFFERENT, outcome
from lab.code.recipes import Planted
from sframe_unwind import elf
from sframe_unwind.cfi.rules import CfiRules
from sframe_unwind.code.decode.machines import MACHINES
from sframe_unwind.convert.from_code import functions_by_code, known_functions
from sframe_unwind.elf.cfi import CfiProblem
from sframe_unwind.errors import MemoryReadError, StepError
from sframe_unwind.unwind.step import step
from sframe_unwind.unwind_rule import UnwindRule
from tests.undescribed import undescribed


class Compared(NamedTuple):
    """The result for one planted function."""

    function: Planted
    right: tuple[int, ...]
    """Addresses that were reached, at which the row of the code always found the frame of the entry."""
    unknown: tuple[int, ...]
    """Addresses that were reached and have no row."""
    different: tuple[int, ...]
    """Addresses whose row did not always find that frame."""


class RowsByCode:
    """The functions of one machine, and the rows from their code.

    Both functions of a pair are executed: they differ in an instruction, and not in their tables.

    :param with_symbols: ``False``: symbols are hidden, too.
    """

    def __init__(self, machine: str, folder: Path, with_symbols: bool = True) -> None:
        self._machine = machine
        self._arch = MACHINES[machine].arch
        self._linked = linked(machine, folder)
        self.pairs = self._linked.pairs
        hidden = undescribed(self._linked.program.path, machine, folder / "hidden", with_symbols)
        self._rules = dict(rules_by_code(hidden))

    def results(self, chosen: Sequence[int]) -> Iterator[Compared]:
        """Yield the results of pairs, by their numbers."""
        program = self._linked.program
        with Stub(self._machine, program.path) as stub, elf.opened(program.path) as binary:
            judge = Judge(self._machine, program, stub)
            for number in chosen:
                for function in self._linked.of_pair(number):
                    if self.pairs[number].is_executed:
                        yield self._executed(function, judge, stub)
                    else:
                        yield self._not_executed(function, binary)

    def _executed(self, function: Planted, judge: Judge, stub: Stub) -> Compared:
        finds: dict[int, bool | None] = {}
        random_ = random.Random(SEED)
        for number in range(RUNS):
            for at, wanted in judge.reached(function.name, random_, number):
                rule = self._rules.get(at.pc)
                found = None if rule is None else self._caller(rule, at, stub) == wanted
                finds[at.pc] = found and finds.get(at.pc, True)
        return _compared(function, finds)

    def _not_executed(self, function: Planted, binary: elf.ElfBinary) -> Compared:
        """Compare with what is known of a function that QEMU cannot execute as processors do.

        Where its recipe has its mark, the CFI of the wrong function is wrong, and that of the right one is right.
        """
        at = self._linked.program.symbols[function.label]
        (described,) = binary.cfi.functions(at, at + 1)
        rule = self._rules.get(at)
        if rule is None or isinstance(described, CfiProblem):
            return _compared(function, {at: None})
        said, _ = CfiRules(self._arch).at(described, at)
        is_right = rule != said if function.is_wrong else outcome(rule, said, self._arch) != DIFFERENT
        return _compared(function, {at: is_right})

    def _caller(self, rule: UnwindRule, at: Stopped, stub: Stub) -> Entered | None:
        """Return the frame that a rule finds; ``None``: it fails."""

        def read_word(address: int) -> int:
            raw = stub.read(address, 8)
            if len(raw) < 8:
                raise MemoryReadError(address, 8)
            return int.from_bytes(raw, self._arch.byteorder)

        def read_register(number: int) -> int:
            general = at.registers
            return general[number] if number < len(general) else stub.floating(number)

        arch = self._arch
        try:
            found = step(
                rule=rule,
                arch=arch,
                sp=at.registers[arch.sp],
                fp=at.registers[arch.fp],
                read_word=read_word,
                read_register=read_register,
            )
        except (StepError, MemoryReadError):
            return None
        return Entered(found.cfa, found.pc, found.fp)


def rules_by_code(path: Path) -> Iterator[tuple[int, UnwindRule | None]]:
    """Yield each instruction of a file with the rule that the code alone gives; ``None``: it is not known."""
    with elf.opened(path) as binary:
        for function in functions_by_code(binary, known_functions(binary), with_exceptions=False):
            yield from ((pc, function.rule_at(pc)) for pc in function.instructions)


def _compared(function: Planted, finds: Mapping[int, bool | None]) -> Compared:
    def found(kind: bool | None) -> tuple[int, ...]:
        return tuple(pc for pc, is_right in finds.items() if is_right is kind)

    return Compared(function, right=found(True), unknown=found(None), different=found(False))
