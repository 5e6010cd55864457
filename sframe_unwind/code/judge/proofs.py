"""Proves a function's rules during its interpretation, so that most of it need not be executed a second time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping

from sframe_unwind.code.decode.instruction import Instruction, Kind
from sframe_unwind.code.interpret.state import State
from sframe_unwind.code.judge.judgement import PROVED, Judge, RowRule
from sframe_unwind.code.judge.needs import NO_NEEDS, Needs
from sframe_unwind.code.judge.tables import Rows
from sframe_unwind.named_tuple import NamedTuple

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


class _RowsAt(NamedTuple):
    """The rows of all tables at an address."""

    rules: tuple[RowRule, ...] | None
    """``None``: a table has no rule."""
    end: int
    """They apply to the instructions before this address."""
    needs: Needs | None
    """What proves them; ``None``: they have to be judged."""


class Proofs:
    """Tells for each instruction of a block, in the order of their addresses, whether all rules are proved there.

    :param rows: the rules of the function, by table.
    :param bases: the registers that the rules use.
    """

    def __init__(self, judge: Judge, rows: Mapping[str, Rows], bases: frozenset[int]) -> None:
        self._judge = judge
        self._rows = [described for described in rows.values() if described.rules]
        self._bases = bases
        self._known: dict[tuple[int, ...], _RowsAt] = {}
        """By the numbers of rows of each table that begin at an address or before."""
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
        if instruction.kind or instruction.stores or instruction.exits:
            if instruction.kind is Kind.CALL and self._until < pc + instruction.size:
                return False  # the row that begins within the call is used while the callee runs
            self._until = 0
            return True
        bases = self._bases
        for number, _ in instruction.puts:  # as in `is_quiet`, without a call: this is called for each instruction
            if number in bases:
                self._until = 0
                break
        return True

    def _judged(self, pc: int, state: State) -> bool:
        at = tuple(bisect_right(starts, pc) for starts, _ in self._rows)
        known = self._known.get(at)
        if known is None:
            known = self._known[at] = self._found(at)
        if known.rules is None:
            return False
        self._end, self._needs = known.end, known.needs
        if known.needs is not None and known.needs.are_met(state):
            return True
        return all(self._judge.judge(rule, state) is PROVED for rule in known.rules)

    def _found(self, at: tuple[int, ...]) -> _RowsAt:
        """Return what is known of the rows at an address, given how many of each table begin there or before."""
        end, needs = _BEYOND, NO_NEEDS
        rules: list[RowRule] = []
        for index, (starts, described) in zip(at, self._rows):
            rule = described[index - 1] if index else None
            if rule is None:
                return _RowsAt(None, 0, None)
            rules.append(rule)
            end = min(end, starts[index]) if index < len(starts) else end
        each = [self._judge.needs(rule) for rule in rules]
        for one in each:
            needs = needs if one is None else needs.plus(one)
        return _RowsAt(tuple(rules), end, None if None in each else needs)
