"""Proves a function's rules during its interpretation, so that most of it need not be executed a second time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping

from sframe_unwind.code.decode.instruction import Instruction, Kind
from sframe_unwind.code.interpret.state import State
from sframe_unwind.code.judge.judgement import PROVED, Judge
from sframe_unwind.code.judge.needs import NO_NEEDS, Needs
from sframe_unwind.code.judge.tables import Rows

_BEYOND = 1 << 64
"""An address after all others."""


def is_quiet(instruction: Instruction, bases: Collection[int]) -> bool:
    """Return whether an instruction changes nothing that rules use.

    :param bases: the registers that the rules use.
    """
    if instruction.kind or instruction.stores or instruction.exits:
        return False
    for number, _ in instruction.puts:  # noqa: SIM110  # three times as fast as any(), in the innermost loop
        if number in bases:
            return False
    return True


class Proofs:
    """Tells for each instruction of a block, in the order of their addresses, whether all rules are proved there.

    :param rows: the rules of the function, by table.
    :param bases: the registers that the rules use.
    """

    def __init__(self, judge: Judge, rows: Mapping[str, Rows], bases: frozenset[int]) -> None:
        self._judge = judge
        self._rows = [described for described in rows.values() if described.rules]
        self._bases = bases
        self._until = 0
        """The proof is valid for the instructions before this address."""
        self._end = 0
        """The rows that were judged last apply to the instructions before this address."""
        self._needs: Needs | None = None
        """What proves these rows; ``None``: they have to be judged."""

    def begin(self) -> None:
        """Begin a block."""
        self._until = self._end = 0

    def holds(self, pc: int, instruction: Instruction, state: State) -> bool:
        """Return whether all tables have a rule for an instruction that is proved in the state before it."""
        if pc >= self._until:
            is_met = pc < self._end and self._needs is not None and self._needs.are_met(state)
            if not (instruction.size and (is_met or self._judged(pc, state))):
                return False
            self._until = self._end
        if instruction.kind is Kind.CALL and self._until < pc + instruction.size:
            return False  # the row that begins within the call is used while the callee runs
        if not is_quiet(instruction, self._bases):
            self._until = 0
        return True

    def _judged(self, pc: int, state: State) -> bool:
        self._end, self._needs = _BEYOND, NO_NEEDS
        for starts, rules in self._rows:
            at = bisect_right(starts, pc)
            rule = rules[at - 1] if at else None
            if rule is None or self._judge.judge(rule, state) is not PROVED:
                return False
            needs = self._judge.needs(rule)
            self._needs = self._needs.plus(needs) if self._needs is not None and needs is not None else None
            if at < len(starts):
                self._end = min(self._end, starts[at])
        return True
