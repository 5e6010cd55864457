"""Checks the tables of one file against its code, function by function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sframe_unwind.code.entries import entries
from sframe_unwind.code.instruction import Kind
from sframe_unwind.code.interpretation import Interpreter, Run
from sframe_unwind.code.judgement import NOT_KNOWN, PROVED, Judge, Judgement, Judgements, RowRule
from sframe_unwind.code.ranges import CodeRange
from sframe_unwind.code.state import State
from sframe_unwind.code.sweep import Sweep
from sframe_unwind.code.tables import RuleTable

TABLES = ("sframe", "dwarf")


class Visit(NamedTuple):
    """What the code makes of one table at one instruction."""

    address: int
    rule: RowRule
    judgements: Judgements


class Checked(NamedTuple):
    """One function with what was found, its own instructions and those of others that were followed from it."""

    function: CodeRange
    visits: Mapping[str, dict[int, Visit]]
    """By table, then by address."""
    instructions: int
    """Of the function itself, without padding that nothing reaches."""
    run: Run


class Checker:
    """Checks functions.

    :param tables: SFrame and DWARF CFI, as far as the file has them.
    """

    def __init__(self, interpreter: Interpreter, tables: Mapping[str, RuleTable]) -> None:
        self._interpreter = interpreter
        self._tables = tables
        self._judge = Judge(interpreter.frame)

    def check(self, function: CodeRange) -> Checked:
        """Judge both tables at every instruction that can be reached from a function's entry."""
        interpreter = self._interpreter
        run = interpreter.run(function, entries(interpreter, function))
        is_first = function.start == interpreter.image.entry_point
        visits: dict[str, dict[int, Visit]] = {table: {} for table in self._tables}
        rows = {}
        for start in sorted(run.states):
            current = function if function.start <= start < function.end else interpreter.ranges.find(start)
            if current is None:
                continue
            if current not in rows:
                rows[current] = [(table, rules.rows(current)) for table, rules in self._tables.items()]
            sweep = interpreter.sweeps.sweep(current)
            guessed = start in run.guessed or not run.complete
            for pc, state in self._walk(run, sweep, start):
                for table, described in rows[current]:
                    rule = described.at(pc)
                    if rule is not None:
                        judged = self._judge.judge(rule, state)
                        if is_first and not isinstance(rule, str) and rule.ra_undefined:
                            judged = PROVED
                        if guessed and judged.worst is Judgement.WRONG:
                            judged = NOT_KNOWN
                        visits[table][pc] = Visit(pc, rule, judged)
        count = self._add_unreached(function, visits)
        return Checked(function, visits, count, run)

    def _walk(self, run: Run, sweep: Sweep, start: int) -> Iterator[tuple[int, State]]:
        """Yield the instructions of a block, each with the state before it."""
        pc, state = start, run.states[start].copy()
        while True:
            instruction = sweep.instructions.get(pc) or sweep.instruction(pc)
            if not instruction.size:
                return
            yield pc, state
            if instruction.kind not in (Kind.NEXT, Kind.SYSTEM):
                return
            self._interpreter.evaluator.apply(instruction, state, pc)
            pc += instruction.size
            if pc in run.states or not sweep.function.start <= pc < sweep.function.end:
                return

    def _add_unreached(self, function: CodeRange, visits: dict[str, dict[int, Visit]]) -> int:
        """Count a function's instructions; nothing is known of those that nothing reaches."""
        sweep = self._interpreter.sweeps.sweep(function)
        padding = self._interpreter.machine.is_padding
        reached = set().union(*visits.values()) if visits else set()
        in_plt = self._interpreter.image.plt(function.start) is not None  # which has data between its entries
        count = 0
        for pc, instruction in sweep.instructions.items():
            if pc not in reached:
                if pc in sweep.executed or in_plt or padding(sweep.bytes_at(pc, instruction.size)):
                    continue
                for table, rules in self._tables.items():
                    rule = rules.rows(function).at(pc)
                    if rule is not None:
                        visits[table][pc] = Visit(pc, rule, NOT_KNOWN)
            count += 1
        return count
