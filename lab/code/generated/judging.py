"""Compares the proofs about random functions with executions of the functions."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from lab.code.executed.judge import Judge
from lab.code.executed.stub import Stub
from lab.code.executed.verdicts import worst
from lab.code.generated.building import make, name
from sframe_unwind.code.judge.judgement import Judgement

RUNS = 8
"""Number of executions of each function, each from another state."""
MORE_RUNS = 120
"""Number of further executions of a function with a row that is called wrong and right in the first executions."""


class Function(NamedTuple):
    """The result for one function: addresses, in order."""

    lines: tuple[str, ...]
    start: int
    proved_falsely: tuple[int, ...]
    """Addresses where a row is proved that is wrong in an execution."""
    accused: tuple[int, ...]
    """Addresses where a row is called wrong that is right in each execution; other states may show it to be wrong."""
    proved: int
    """Number of rows that are right in each execution, and proved."""
    right: int
    wrong: int
    found: int
    """Number of rows that are wrong in an execution, and called wrong."""

    @property
    def counts(self) -> tuple[int, ...]:
        """Return the numbers of rows reached, proved, right, wrong, found, accused, and of functions (1)."""
        return self.right + self.wrong, self.proved, self.right, self.wrong, self.found, len(self.accused), 1

    def __str__(self) -> str:
        places = [f"proved falsely: {', '.join(hex(pc - self.start) for pc in self.proved_falsely)}"]
        places += [f"accused: {', '.join(hex(pc - self.start) for pc in self.accused)}"]
        return "\n".join([*places, *(f"    {line}" for line in self.lines)])


def judged(machine: str, seed: int, count: int, folder: Path) -> Iterator[Function]:
    """Make functions, and yield the result for each."""
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
        lines=tuple(lines),
        start=start,
        proved_falsely=among(wrong, Judgement.PROVED),
        accused=among(right, Judgement.WRONG),
        proved=len(among(right, Judgement.PROVED)),
        right=len(right),
        wrong=len(wrong),
        found=len(among(wrong, Judgement.WRONG)),
    )
