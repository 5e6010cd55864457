"""Finds the meaning of changed rows by executing their instructions in QEMU, independent of verdicts and states."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lab.code.forced import Answers, Forced, Question
from lab.code.mutating import Mutation
from sframe_unwind import unwind_rule
from sframe_unwind.code.image.ranges import CodeRange
from sframe_unwind.code.interpret.entries import entries, interpreted
from sframe_unwind.code.interpret.interpretation import Interpreter
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule

_EXECUTIONS = 2
"""Number of executions of a function, from different states and on different paths."""


class Meaning(NamedTuple):
    """The meaning of a changed row."""

    text: str
    executed: int
    """Number of its instructions that were executed."""
    instructions: int
    is_same: bool
    """Whether it gives the right value at all of these."""


class Meanings:
    """The meanings of changed rows of one file."""

    def __init__(self, interpreter: Interpreter, forced: Forced) -> None:
        self._interpreter = interpreter
        self._forced = forced

    def of(self, function: CodeRange, changed: Sequence[Mutation]) -> Iterator[Meaning]:
        """Yield the meaning of each of a function's changed rows."""
        interpreter = self._interpreter
        entered = entries(interpreter, function)
        run = interpreted(interpreter, function, entered)
        wanted: defaultdict[int, set[Question]] = defaultdict(set)
        for mutation in changed:
            for pc in self._instructions(mutation.addresses):
                wanted[pc] |= {Question(mutation.what, rule) for rule in (mutation.before, mutation.rule)}
        found = Answers()
        for seed in range(_EXECUTIONS):
            for asked, given in self._forced.answers(run, entered.keys(), wanted, seed).items():
                found[asked] = given and found.get(asked, True)
        for mutation in changed:
            yield self._meaning(mutation, found)

    def _instructions(self, addresses: range) -> list[int]:
        """Return the addresses of instructions in a range, without padding."""
        sweep = self._interpreter.sweep_at(addresses.start)
        padding = self._interpreter.machine.is_padding
        return [
            pc
            for pc, instruction in sweep.instructions.items()
            if pc in addresses and not padding(sweep.bytes_at(pc, instruction.size))
        ]

    def _meaning(self, mutation: Mutation, found: Answers) -> Meaning:
        what, rules = mutation.what, (mutation.before, mutation.rule)
        pcs = self._instructions(mutation.addresses)
        before, after = (
            [found[pc, Question(what, rule)] for pc in pcs if (pc, Question(what, rule)) in found] for rule in rules
        )
        one, other = (self._said(what, rule) for rule in rules)
        if not after:
            text = "not executed" if pcs else "padding"
        elif not all(after):
            text = f"{other} does not give the {what} at {after.count(False)} instructions"
        elif not all(before):
            text = f"the row was wrong before: {other} gives the {what}, and {one} does not"
        else:
            text = f"{one} and {other} both give the {what}"
        return Meaning(text, len(after), len(pcs), all(after) and bool(after or not pcs))

    def _said(self, what: str, rule: UnwindRule) -> str:
        arch = self._interpreter.machine.arch
        place: RegisterRule | None = getattr(rule, what)
        if place is None:
            return arch.register_name(arch.fp if what == "fp" or arch.ra is None else arch.ra)
        base = "CFA" if place.base == unwind_rule.CFA else arch.register_name(place.base)
        return f"[{base}{place.offset:+}]" if place.in_memory else f"{base}{place.offset:+}"
