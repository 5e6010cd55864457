"""Checks the tables of one file against its code, function by function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b

from sframe_unwind.code.image.ranges import CodeRange
from sframe_unwind.code.interpret.interpretation import Interpreter
from sframe_unwind.code.interpret.run import Run
from sframe_unwind.code.interpret.values import UNKNOWN
from sframe_unwind.code.judge.findings import FunctionResult, Part, Verdicts, counted, unknown_in
from sframe_unwind.code.judge.function_check import FunctionCheck
from sframe_unwind.code.judge.judgement import (
    Judgement,
    RowRule,
)
from sframe_unwind.code.judge.results import Pool
from sframe_unwind.code.judge.table_judge import TableJudge
from sframe_unwind.code.judge.tables import Rows, RuleTable

_MAX_REMEMBERED = 200_000
"""Maximum number of functions to remember."""


class Checker(TableJudge):
    """Checks the functions of one file.

    :param tables: the tables of the file, by name.
    :param wanted: addresses for which the results must have verdicts.
    :param origins: whether to find the instruction after which a rule becomes unknown.
    """

    def __init__(
        self,
        interpreter: Interpreter,
        tables: Mapping[str, RuleTable],
        wanted: frozenset[int] = frozenset(),
        origins: bool = False,
    ) -> None:
        super().__init__(interpreter, tables, origins)
        self._wanted = wanted
        self.pool = Pool()
        self._remembered: dict[bytes, FunctionResult] = {}
        self._rules: dict[RowRule | None, int] = {}
        """Numbers of rules, for the keys of functions."""

    def result(self, function: CodeRange) -> FunctionResult:
        """Judge the tables at every instruction of a function, unless an equal function has been judged before."""
        rows = self.rows(function)
        key = self._key(function, rows)
        known = self._remembered.get(key)
        if known is not None and self._wanted.isdisjoint(range(*function)):
            return known.at(function.start)
        check = FunctionCheck(self, function, rows=rows)
        parts = check.parts()
        own = parts.pop(function.start)
        run = check.run
        starts = tuple(sorted(start for start in run.called if self._is_start(start)))
        within = tuple(sorted(address for address in run.called if self.interpreter.within_another(address, function)))
        result = FunctionResult(
            start=function.start,
            instructions=check.instructions,
            counts={table: counted(verdicts) for table, verdicts in own.verdicts.items() if verdicts},
            findings=own.findings,
            unknown=unknown_in(own.verdicts),
            wanted=self.wanted_of(own.verdicts, function),
            elsewhere=parts,
            continued=frozenset(run.continued),
            called=starts,
            called_within=within,
            returns=run.returns,
            changes_fp=run.changes_fp,
            moves_sp=self._moved(run),
            comes_back=self.interpreter.frame.return_address in run.returns_to,
            presumes=run.presumes,
            complete=run.complete,
            ends_as_entered=run.ends_as_entered,
            rests_on_effects=check.rests_on_effects,
            stores=run.stores,
            passed=run.passed,
        )
        is_own = run.is_local and not (starts or within) and not check.rests_on_effects
        if is_own and not result.findings and len(self._remembered) < _MAX_REMEMBERED:
            self._remembered[key] = self.pool.common(result)
        return result

    def _moved(self, run: Run) -> int | None:
        """Return how far a function moves its caller's stack pointer beyond what the ABI defines, in bytes.

        A function that returns, and seems to be entered with more on the stack, may also remove that from the frame of
        its caller: without tables, nothing tells which it is.
        """
        if (run.pushed and run.has_return) or UNKNOWN in run.stack_pointers_at_return:
            return None
        usual = self.interpreter.frame.sp_at_return
        moved = {offset - usual[1] for base, offset in run.stack_pointers_at_return if base == usual[0]}
        if not moved - {0}:
            return 0
        return moved.pop() if len(run.stack_pointers_at_return) == 1 else None

    def part(self, function: CodeRange) -> Part:
        """Judge a function as :meth:`result` does; return all findings in it."""
        return FunctionCheck(self, function).parts()[function.start]

    def unentered(self, function: CodeRange) -> Part:
        """Return the findings in a function that nothing enters: all its instructions are unknown."""
        return FunctionCheck(self, function, {}).parts()[function.start]

    def looks_entered(self, function: CodeRange) -> bool:
        """Return whether a table has the row of a function's entry at the start of some code.

        Parts of functions that are elsewhere are not entered that way.  They need not be interpreted by themselves if
        another function leads to them.
        """
        if self.interpreter.image.plt(function.start) is not None:
            return True
        entry = self.interpreter.frame.entry()
        first = CodeRange(function.start, function.start + 1)
        rules = [rule for table in self.tables.values() if (rule := table.rows(first).at(first.start)) is not None]
        return not rules or any(self._judge.judge(rule, entry).worst is Judgement.PROVED for rule in rules)

    def called_at(self, function: CodeRange, addresses: Iterable[int]) -> Part:
        """Return the findings in a function that is called at some addresses after its start, from there on."""
        entry = self.interpreter.frame.entry()
        part = FunctionCheck(self, function, {address: entry.copy() for address in addresses}).parts()[function.start]
        return Part(
            {
                table: {pc: judged for pc, judged in verdicts.items() if pc not in part.unreached}
                for table, verdicts in part.verdicts.items()
            },
            part.findings,
        )

    def _is_start(self, address: int) -> bool:
        found = self.interpreter.ranges.find(address)
        return found is not None and found.start == address

    def wanted_of(self, verdicts: Mapping[str, Verdicts], function: CodeRange) -> dict[str, Verdicts]:
        """Return the verdicts at the wanted addresses of a function, by table."""
        if self._wanted.isdisjoint(range(*function)):
            return {}
        wanted = self._wanted.intersection(range(*function))
        return {table: {pc: found[pc] for pc in wanted if pc in found} for table, found in verdicts.items()}

    def _key(self, function: CodeRange, rows: Mapping[str, Rows]) -> bytes:
        """Return a digest of all data on which the result depends, without the address of the function."""
        start = function.start
        sweep = self.interpreter.sweeps.sweep(function)
        number = self._rules.setdefault
        described = [
            (table, [at - start for at in found.starts], [number(rule, len(self._rules)) for rule in found.rules])
            for table, found in rows.items()
        ]
        not_returning = [call - start for call, target in sweep.calls() if target in self.interpreter.not_returning]
        # Signal trampolines, and the function in which a program starts, are not entered as other functions are.
        is_signal = any(table.is_signal(function) for table in self.tables.values())
        is_first = start == self.interpreter.image.entry_point
        # An instruction that another one executes may lie elsewhere.
        executed = [(pc - start, sweep.instruction(pc)) for pc in sweep.executing]
        branches = [(pc - start, target - pc) for pc, target in sweep.branches]
        rest = described, not_returning, sweep.external_names(), executed, branches, is_signal or is_first
        return blake2b(repr(rest).encode() + sweep.bytes_at(start, function.end - start), digest_size=16).digest()
