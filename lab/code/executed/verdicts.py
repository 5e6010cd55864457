"""Compares the proofs about planted functions with their executions in QEMU."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from lab.code.executed.judge import Judge
from lab.code.executed.linked import linked
from lab.code.executed.stub import Stub
from lab.code.recipes import Planted
from sframe_unwind import elf
from sframe_unwind.code.judge.judgement import Judgement
from sframe_unwind.verify.code_check import check_elf

RUNS = 8
"""Number of executions of each function."""
SEED = 7


class Result(NamedTuple):
    """The result for one planted function."""

    function: Planted
    is_planted: bool
    """Whether the executions confirm the recipe: they refute a row of a wrong function, and no row of a right one."""
    proved_falsely: tuple[int, ...]
    """Addresses at which rows are proved although they are wrong."""
    accused: tuple[int, ...]
    """Addresses at which rows are called wrong although they are right."""
    is_found: bool
    """For a wrong function: it is called wrong somewhere.  For a right one: all of it is proved."""


def worst(path: Path) -> Mapping[int, list[Judgement]]:
    """Return the verdicts of a file's tables on each address."""
    found: dict[int, list[Judgement]] = {}
    with elf.opened(path) as binary:
        wanted = frozenset(pc for start, end in binary.cfi.ranges() for pc in range(start, end))
        for verdicts in check_elf(binary, binary.sframe, wanted=wanted).wanted.values():
            for pc, judged in verdicts.items():
                found.setdefault(pc, []).append(judged.worst)
    return found


class Verdicts:
    """The functions of one machine, linked, and checked against their code.

    :param machine: name of the machine in :mod:`lab.code.executed.stub`.
    """

    def __init__(self, machine: str, folder: Path) -> None:
        self._machine = machine
        self._linked = linked(machine, folder)
        self.pairs = self._linked.pairs
        self._program = self._linked.program
        self._worst = worst(self._program.path)

    @property
    def unknown(self) -> tuple[int, int]:
        """Return the number of unknown verdicts on instructions, and of all."""
        every = [judged for verdicts in self._worst.values() for judged in verdicts]
        return every.count(Judgement.UNKNOWN), len(every)

    def results(self, chosen: Sequence[int]) -> Iterator[Result]:
        """Yield the results of pairs, by their numbers."""
        with Stub(self._machine, self._program.path) as stub:
            judge = Judge(self._machine, self._program, stub)
            for number in chosen:
                for function in self._linked.of_pair(number):
                    shown = judge.wrong(function.name, random.Random(SEED), RUNS)
                    yield self._result(function, shown if self.pairs[number].is_executed else self._said(function))

    def _said(self, function: Planted) -> dict[int, bool]:
        """Return the result for a function that QEMU cannot execute."""
        address = self._program.symbols[function.label]
        return {address: True} if function.is_wrong else dict.fromkeys((address, self._start(function)), False)

    def _start(self, function: Planted) -> int:
        return self._program.symbols[function.name]

    def _result(self, function: Planted, shown: Mapping[int, bool]) -> Result:
        symbols = self._program.symbols
        before, after = symbols[f"before_{function.name}"], symbols[f"after_{function.name}"]
        # Rows do not follow the lines at the mark instruction by instruction.
        wrong = [pc for pc, is_wrong in shown.items() if is_wrong and (function.is_wrong or not before < pc < after)]
        judged = {pc: self._worst.get(pc, []) for pc in self._addresses(function)}
        if function.is_wrong:
            is_found = any(Judgement.WRONG in verdicts for verdicts in judged.values())
        else:
            is_found = not any(Judgement.UNKNOWN in verdicts for verdicts in judged.values())
        return Result(
            function,
            bool(wrong) == function.is_wrong,
            tuple(pc for pc, is_wrong in shown.items() if is_wrong and Judgement.PROVED in judged.get(pc, ())),
            tuple(pc for pc, is_wrong in shown.items() if not is_wrong and Judgement.WRONG in judged.get(pc, ()))
            if not function.is_wrong
            else (),
            is_found,
        )

    def _addresses(self, function: Planted) -> list[int]:
        """Return the addresses of a function and its cold part that have verdicts."""
        names = {self._program.symbols.get(name, 0) for name in (function.name, f"{function.name}.cold")}
        return [pc for pc in self._worst if self._program.start(pc) in names]
