"""Judges the rules of the tables of one file in the states of its code."""

from __future__ import annotations

from collections.abc import Mapping

from sframe_unwind.code.image.ranges import CodeRange
from sframe_unwind.code.interpret.interpretation import Interpreter
from sframe_unwind.code.interpret.run import Run
from sframe_unwind.code.interpret.state import State
from sframe_unwind.code.judge.explanation import Explainer
from sframe_unwind.code.judge.findings import Finding
from sframe_unwind.code.judge.judgement import (
    Judge,
    Judgement,
    Judgements,
    RowRule,
    plain,
)
from sframe_unwind.code.judge.proofs import Proofs
from sframe_unwind.code.judge.tables import Rows, RuleTable
from sframe_unwind.unwind_rule import UnwindRule

_VALUES = ("cfa", "ra", "fp")


class TableJudge:
    """Judges the tables of one file.

    :param tables: the tables of the file, by name.
    :param origins: whether to find the instruction after which a rule becomes unknown.
    """

    def __init__(self, interpreter: Interpreter, tables: Mapping[str, RuleTable], origins: bool = False) -> None:
        self.origins = origins
        self.interpreter = interpreter
        self.tables = tables
        self._judge = Judge(interpreter.frame)
        self._explainer = Explainer(interpreter, interpreter.image.relative)

    def rows(self, function: CodeRange) -> dict[str, Rows]:
        """Return the rows of a function, by table."""
        return {table: rules.rows(function) for table, rules in self.tables.items()}

    def judge(self, run: Run, block: int, rule: RowRule, state: State) -> Judgements:
        """Judge one rule in one state of a block."""
        return self._judge.judge_in(run, block, rule, state)

    def judge_alone(self, rule: RowRule, state: State) -> Judgements:
        """Judge one rule in one state, independent of the function."""
        return self._judge.judge(rule, state)

    def proofs(self, rows: Mapping[str, Rows], bases: frozenset[int]) -> Proofs:
        """Return the object that proves the rules of a function during its interpretation."""
        return Proofs(self._judge, rows, bases)

    def clobbered(self, rule: UnwindRule, state: State) -> dict[str, int]:
        """Return the values of a rule that are wrong in a state only because of the ABI: see
        :meth:`Judge.clobbered`."""
        return self._judge.clobbered(rule, state)

    def with_origin(self, judged: Judgements, rule: RowRule, run: Run, block: int, pc: int, state: State) -> Judgements:
        """Return a judgement of something unknown, with the instruction from which on it is unknown."""
        known = plain(rule)
        if known is None or known.cfa is None:
            return judged
        what = next(what for what, one in zip(_VALUES, judged) if one is Judgement.UNKNOWN)
        found = self._explainer.explain(what=what, rule=known, run=run, block=block, pc=pc, state=state).origin
        return judged if found is None else judged._replace(origin=found.address, instruction=found.text)

    def finding(
        self, table: str, what: str, rule: UnwindRule, run: Run, block: int, pc: int, state: State, end: int
    ) -> Finding:
        """Return the finding for a rule that is wrong."""
        found = self._explainer.explain(what=what, rule=rule, run=run, block=block, pc=pc, state=state)
        origin = found.origin
        return Finding(
            address=pc,
            end=end,
            table=table,
            what=what,
            rule=found.rule,
            code=found.code,
            origin=origin and origin.address,
            instruction=origin.text if origin else "",
        )
