"""Checks all functions of a file, in several processes, and puts together what jumps between functions take apart."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Callable

from sframe_unwind.code.checking import Checker, joined
from sframe_unwind.code.findings import (
    NONE,
    CodeVerdict,
    Counts,
    Finding,
    FunctionResult,
    FunctionVerdict,
    Part,
    Verdicts,
    counted,
)
from sframe_unwind.code.judgement import NOT_KNOWN, Judgement
from sframe_unwind.code.ranges import CodeRange

Progress = Callable[[int, int], None]
"""Is told how many functions are done, and of how many."""

_CHUNK = 64
"""Functions that a process takes at a time."""
_MIN_PARALLEL = 256
"""Fewer functions than these are done before another process has started."""

_checker: Checker | None = None
"""What the processes work with: they are forked when it is there."""


def check_functions(checker: Checker, jobs: int = 1, progress: Progress | None = None) -> CodeVerdict:
    """Check all functions of a file.

    :param jobs: how many processes work.
    """
    assembly = _Assembly(checker)
    total = len(checker.interpreter.ranges)
    for number, result in enumerate(_results(checker, jobs), 1):
        assembly.add(result)
        if progress is not None:
            progress(number, total)
    return assembly.verdict()


def _results(checker: Checker, jobs: int) -> Iterator[FunctionResult]:
    ranges = checker.interpreter.ranges
    count = len(ranges)
    if jobs <= 1 or count < _MIN_PARALLEL or "fork" not in multiprocessing.get_all_start_methods():
        yield from (checker.result(ranges[number]) for number in range(count))
        return
    global _checker
    _checker = checker
    try:
        with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("fork")) as pool:
            chunks = [range(first, min(first + _CHUNK, count)) for first in range(0, count, _CHUNK)]
            for results in pool.map(_chunk, chunks):
                yield from results
    finally:
        _checker = None


def _chunk(numbers: Sequence[int]) -> list[FunctionResult]:
    assert _checker is not None
    ranges = _checker.interpreter.ranges
    return [_checker.result(ranges[number]) for number in numbers]


class _Assembly:
    """Puts the results of a file's functions together."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self._results: dict[int, FunctionResult] = {}
        self._continued: set[int] = set()
        self._called: set[int] = set()

    def add(self, result: FunctionResult) -> None:
        """Take the result of one function."""
        self._results[result.start] = result
        self._continued |= result.continued
        self._called |= result.called

    def verdict(self) -> CodeVerdict:
        """Return how the file came out."""
        # A function that is entered with another's frame, and that nobody calls, is a part of the other: what was
        # found from its first instruction, with a frame of its own, does not count.
        parts_of_others = self._continued - self._called
        elsewhere: dict[int, list[Part]] = {}
        for result in self._results.values():
            if result.start not in parts_of_others:
                for start, part in result.elsewhere.items():
                    elsewhere.setdefault(start, []).append(part)
        functions: list[FunctionVerdict] = []
        totals: dict[str, Counts] = {}
        wanted: dict[str, Verdicts] = {}
        findings: list[Finding] = []
        ranges = self._checker.interpreter.ranges
        for start in sorted(self._results):
            result, function = self._results[start], ranges.find(start)
            assert function is not None
            counts, found, asked = result.counts, result.findings, result.wanted
            others = elsewhere.get(start, [])
            if others or start in parts_of_others:
                part = self._whole(function, others, start in parts_of_others)
                counts = {table: counted(verdicts) for table, verdicts in part.verdicts.items() if verdicts}
                found, asked = part.findings, self._asked(result, part)
            functions.append(FunctionVerdict(*function, {table: _worst(one) for table, one in counts.items()}))
            for table, count in counts.items():
                totals[table] = totals.get(table, NONE).plus(count)
            for table, verdicts in asked.items():
                wanted.setdefault(table, {}).update(verdicts)
            findings += found
        return CodeVerdict(
            tuple(functions),
            sum(result.instructions for result in self._results.values()),
            {table: totals.get(table, NONE) for table in self._checker.tables},
            tuple(sorted(findings, key=lambda finding: (finding.address, finding.what, finding.table))),
            wanted,
            sum(not result.complete for result in self._results.values()),
        )

    def _whole(self, function: CodeRange, others: list[Part], is_part: bool) -> Part:
        """Return what is found in a function that others jump into."""
        own = self._checker.part(function)
        if not is_part:
            return joined([own, *others])
        # What nothing else reaches is not known.
        found = joined(others)
        verdicts = {
            table: {pc: found.verdicts.get(table, {}).get(pc, NOT_KNOWN) for pc in known}
            for table, known in own.verdicts.items()
        }
        return Part(verdicts, found.findings)

    @staticmethod
    def _asked(result: FunctionResult, part: Part) -> dict[str, Verdicts]:
        return {
            table: {pc: part.verdicts[table][pc] for pc in verdicts if pc in part.verdicts.get(table, ())}
            for table, verdicts in result.wanted.items()
        }


def _worst(counts: Counts) -> Judgement:
    if counts.wrong:
        return Judgement.WRONG
    return Judgement.UNKNOWN if counts.unknown else Judgement.PROVED
