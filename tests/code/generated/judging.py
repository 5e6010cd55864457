"""What the code proves of random functions, against what they do when they are executed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from sframe_unwind.code.judgement import Judgement
from tests.code.executed.judge import Judge
from tests.code.executed.stub import Stub
from tests.code.executed.verdicts import worst
from tests.code.generated.building import make, name

RUNS = 8
"""Executions of each function, each from another state."""
MORE_RUNS = 120
"""Executions more of one of which a row is called wrong that none of the first shows to be wrong."""


class Function(NamedTuple):
    """How one function came out: addresses, in its order."""

    lines: tuple[str, ...]
    start: int
    proved_falsely: tuple[int, ...]
    """Where a row is proved that is wrong in an execution."""
    accused: tuple[int, ...]
    """Where a row is called wrong that is right in each; another state may show it to be wrong."""
    proved: int
    """Rows that are right in each execution and proved."""
    right: int
    wrong: int
    found: int
    """Rows that are wrong in an execution and called wrong."""

    @property
    def counts(self) -> tuple[int, ...]:
        """Rows reached, proved, right, wrong, found, accused, and one function."""
        return self.right + self.wrong, self.proved, self.right, self.wrong, self.found, len(self.accused), 1

    def __str__(self) -> str:
        places = [f"proved falsely: {', '.join(hex(pc - self.start) for pc in self.proved_falsely)}"]
        places += [f"accused: {', '.join(hex(pc - self.start) for pc in self.accused)}"]
        return "\n".join([*places, *(f"    {line}" for line in self.lines)])


def judged(machine: str, seed: int, count: int, folder: Path) -> Iterator[Function]:
    """Make functions and yield how each came out."""
    program, functions = make(machine, seed, count, folder)
    verdicts = worst(program.path)
    random_ = random.Random(f"executed {machine} {seed}")
    with Stub(machine, program.path) as stub:
        judge = Judge(machine, program, stub)
        for number, lines in enumerate(functions):
            start, shown = program.symbols[name(number)], judge.wrong(name(number), random_, RUNS)
            function = _compared(lines, start, shown, verdicts)
            if function.accused:
                more = judge.wrong(name(number), random_, MORE_RUNS)
                both = {pc: shown.get(pc, False) or more.get(pc, False) for pc in {**shown, **more}}
                function = _compared(lines, start, both, verdicts)
            yield function


def _compared(
    lines: list[str], start: int, shown: Mapping[int, bool], verdicts: Mapping[int, list[Judgement]]
) -> Function:
    wrong = [pc for pc, is_wrong in shown.items() if is_wrong]
    right = [pc for pc, is_wrong in shown.items() if not is_wrong]

    def among(pcs: list[int], judgement: Judgement) -> tuple[int, ...]:
        return tuple(pc for pc in pcs if judgement in verdicts.get(pc, ()))

    return Function(
        tuple(lines),
        start,
        among(wrong, Judgement.PROVED),
        among(right, Judgement.WRONG),
        len(among(right, Judgement.PROVED)),
        len(right),
        len(wrong),
        len(among(wrong, Judgement.WRONG)),
    )
