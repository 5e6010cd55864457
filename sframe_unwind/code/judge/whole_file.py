"""Checks all functions of a file, in several processes, and combines the results of functions that share code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sframe_unwind.code.image.ranges import CodeRange, Starts
from sframe_unwind.code.interpret.effects import MAX_FUNCTIONS
from sframe_unwind.code.interpret.stores import Written
from sframe_unwind.code.judge.checking import Checker
from sframe_unwind.code.judge.findings import (
    NONE,
    CodeVerdict,
    Counts,
    Finding,
    FunctionResult,
    Part,
    Unknown,
    Verdicts,
    counted,
    unknown_in,
)
from sframe_unwind.code.judge.judgement import NOT_REACHED, Judgement, Judgements
from sframe_unwind.code.judge.results import FunctionVerdicts, Results
from sframe_unwind.code.judge.ways import contradict, joined, not_wrong, reached
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.workers import Lost, Progress, WorkerError, can_fork, in_order

_WORD = 8
_CHUNK = 64
"""Number of functions that a process takes at a time."""
_MAX_ROUNDS = 8
"""Maximum number of times that functions are checked again because new facts about their callees were found."""
_MIN_PARALLEL = 256
"""Fewer functions are checked in this process, which takes less time than to start another process."""


def check_functions(
    checker: Checker,
    jobs: int = 1,
    progress: Progress | None = None,
    only: Sequence[int] | None = None,
    reported: Sequence[int] | None = None,
) -> CodeVerdict:
    """Check the functions of a file.

    :param jobs: number of processes.
    :param only: the numbers of the functions to check, ascending; ``None``: all.  The effects of functions that are
        not checked are not known.
    :param reported: those of them whose results are returned, ascending; ``None``: all.
    """
    chosen = range(len(checker.interpreter.ranges)) if only is None else only
    return _assembled(checker, chosen, jobs, progress).verdict(chosen if reported is None else reported)


def learned(checker: Checker, jobs: int = 1, only: Sequence[int] | None = None) -> set[int]:
    """Tell the interpreter the effects of the functions of a file on their callers.

    :param jobs: number of processes.
    :param only: the numbers of the functions to examine, ascending; ``None``: all.
    :return: the starts of functions that are parts of others: they are entered with another function's frame.
    """
    chosen = range(len(checker.interpreter.ranges)) if only is None else only
    return _assembled(checker, chosen, jobs).parts()


def _assembled(checker: Checker, chosen: Sequence[int], jobs: int, progress: Progress | None = None) -> _Assembly:
    ranges = checker.interpreter.ranges
    total = len(chosen)
    later = [number for number in chosen if not checker.looks_entered(ranges[number])]
    left = set(later)
    checker.interpreter.unentered = frozenset(ranges[number].start for number in later)
    checker.interpreter.effects.parts = checker.interpreter.unentered
    assembly = _Assembly(checker)
    first = [number for number in chosen if number not in left]
    done = 0
    for numbers in (first, later):
        # The check of the first functions shows which of the later ones are only parts of them.
        entered = [number for number in numbers if not assembly.is_part_of_others(ranges[number].start)]
        done += len(numbers) - len(entered)
        for result in _results(checker, entered, jobs):
            assembly.add(result)
            done += 1
            if progress is not None:
                progress(done, total)
    for _ in range(_MAX_ROUNDS):
        again = assembly.learn()
        if not again:
            break
        for result in _results(checker, [number for number in chosen if ranges.starts[number] in again], jobs):
            assembly.add(result)
    return assembly


def _results(checker: Checker, numbers: Sequence[int], jobs: int) -> Iterator[FunctionResult]:
    ranges = checker.interpreter.ranges
    if jobs <= 1 or len(numbers) < _MIN_PARALLEL or not can_fork():
        yield from (checker.result(ranges[number]) for number in numbers)
        return

    def chunk(numbers: Sequence[int]) -> list[FunctionResult]:
        return [checker.result(ranges[number]) for number in numbers]

    chunks = [numbers[first : first + _CHUNK] for first in range(0, len(numbers), _CHUNK)]
    for results in in_order(chunk, chunks, jobs):
        if isinstance(results, Lost):
            raise WorkerError(results.why)
        yield from results


class _Found(NamedTuple):
    """The countable results for one function."""

    instructions: int
    counts: Mapping[str, Counts]
    findings: tuple[Finding, ...]
    unknown: tuple[Unknown, ...]
    wanted: Mapping[str, Verdicts]


class _Assembly:
    """Combines the results for a file's functions."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self._results = Results(checker.interpreter.ranges, checker.pool)
        self._continued: set[int] = set()
        self._called = Starts(checker.interpreter.ranges)
        self._called_within: dict[int, set[int]] = {}
        """By the start of a function, the addresses after it that other functions call."""
        self._reconsidered: set[int] = set()

    def add(self, result: FunctionResult) -> None:
        """Add the result for one function."""
        self._continued |= result.continued
        for start in result.called:
            self._called.add(start)
        for address in result.called_within:
            function = self._checker.interpreter.ranges.find(address)
            assert function is not None
            self._called_within.setdefault(function.start, set()).add(address)
        self._results.add(result)

    def learn(self) -> set[int]:
        """Tell the interpreter the facts about called functions; return the starts of their callers.

        The interpreter learns which functions do not return, which certainly do, and which return with another frame
        pointer or stack pointer.
        """
        interpreter, learned = self._checker.interpreter, set()
        for start, result in self._results.all():
            if not result.complete or not self._is_entered(start):
                continue
            if not result.returns and start not in interpreter.not_returning:
                interpreter.not_returning.add(start)
                learned.add(start)
            if result.changes_fp and start not in interpreter.changing_fp:
                interpreter.changing_fp.add(start)
                learned.add(start)
            if result.moves_sp != 0 and start not in interpreter.moving_sp:
                interpreter.moving_sp[start] = result.moves_sp
                learned.add(start)
            known = interpreter.storing.get(start, frozenset())
            above = {one for one in result.stores if one.register == interpreter.frame.sp}
            if not above <= known:
                interpreter.storing[start] = known | result.stores
                learned.add(start)
            if result.comes_back:
                interpreter.coming_back.add(start)
        learned |= self._stores_in_callers()
        if learned:
            interpreter.effects.forget()
        leading = self._leading_to(learned)
        return {start for start, result in self._results.all() if self._is_concerned(start, result, learned, leading)}

    def _leading_to(self, learned: set[int]) -> set[int]:
        """Return some functions, and their direct and indirect callers that examined the effects of their callees."""
        leading, found = set(learned), len(learned)
        for _ in range(MAX_FUNCTIONS if learned else 0):
            leading.update(
                start for start, _ in self._results.all() if not leading.isdisjoint(self._results.called(start))
            )
            if len(leading) == found:
                break
            found = len(leading)
        return leading

    def _stores_in_callers(self) -> set[int]:
        """Tell the interpreter which functions overwrite saved registers by pointers to them; return their starts."""
        found: dict[int, frozenset[Written]] = {}
        storing = self._checker.interpreter.storing
        for _, result in self._results.all():
            for called, register, distance in result.passed:
                if called not in found:
                    callee = self._results.get(called)
                    stores = frozenset() if callee is None else callee.stores
                    stores -= storing.get(called, frozenset())
                    if callee is not None and any(_overwrites(one, register, distance) for one in stores):
                        found[called] = callee.stores
        storing.update({called: storing.get(called, frozenset()) | stores for called, stores in found.items()})
        return set(found)

    def _is_concerned(self, start: int, result: FunctionResult, learned: set[int], leading: set[int]) -> bool:
        """Return whether new facts concern a callee of a function, or an indirect one if the result rests on effects.

        A call of a function that returns may have been taken for the end of a path; :attr:`FunctionResult.presumes`
        shows that.
        """
        if not learned and not result.presumes:
            return False
        called = self._results.called(start)
        if not (leading if result.rests_on_effects else learned).isdisjoint(called):
            return True
        if not result.presumes or start in self._reconsidered:
            return False
        if not any(one in self._checker.interpreter.coming_back for one in called):
            return False
        self._reconsidered.add(start)
        return True

    def is_part_of_others(self, start: int) -> bool:
        """Return whether a function is entered with another's frame, and never called, according to the added results.

        The function is then a part of the other function, and its findings as a function of its own are dropped.
        """
        return start in self._continued and not self._is_entered(start)

    def _is_part_of_unknown(self, start: int, result: FunctionResult) -> bool:
        """Return whether a function seems to be a part of an unknown function, whose jump to it was not followed.

        Both its rows and its code show that it is not entered by calls, and no call of it is known.
        """
        is_alike = start in self._checker.interpreter.unentered and not self._is_entered(start)
        return is_alike and not result.ends_as_entered

    def _is_entered(self, start: int) -> bool:
        """Return whether a function is known to be entered from elsewhere by a call."""
        return start in self._called or start in self._checker.interpreter.image.reachable

    def parts(self) -> set[int]:
        """Return the starts of functions that are parts of others."""
        parts = {
            start
            for start, result in self._results.all()
            if self.is_part_of_others(start) or self._is_part_of_unknown(start, result)
        }
        return parts | self._mistaken(self._elsewhere(parts))

    def verdict(self, numbers: Sequence[int]) -> CodeVerdict:
        """Return the verdict on some functions of the file.

        :param numbers: the numbers of these functions, ascending.
        """
        parts = self.parts()
        elsewhere = self._elsewhere(parts)
        totals: dict[str, Counts] = {}
        wanted: dict[str, dict[int, Judgements]] = {}
        findings: list[Finding] = []
        unknown: list[Unknown] = []
        instructions = 0
        ranges = self._checker.interpreter.ranges
        functions = FunctionVerdicts(ranges, numbers)
        for function in map(ranges.__getitem__, numbers):
            result = self._results.get(function.start) if function.start not in parts else None
            others = elsewhere.get(function.start, []) + self._called_after_start(function)
            found = self._found(function, result, others)
            instructions += found.instructions
            functions.add({table: _worst(counts) for table, counts in found.counts.items()})
            for table in self._checker.tables:
                counts = found.counts.get(table, NONE)
                examined = counts._replace(not_examined=found.instructions - sum(counts))
                totals[table] = totals.get(table, NONE).plus(examined)
            for table, verdicts in found.wanted.items():
                wanted.setdefault(table, {}).update(verdicts)
            findings += found.findings
            unknown += found.unknown
        return CodeVerdict(
            functions=functions,
            instructions=instructions,
            counts={table: totals.get(table, NONE) for table in self._checker.tables},
            findings=tuple(sorted(findings, key=lambda finding: (finding.address, finding.what, finding.table))),
            unknown=tuple(unknown),
            wanted=wanted,
            given_up=sum(not result.complete for _, result in self._results.all()),
        )

    def _elsewhere(self, parts: set[int]) -> dict[int, list[Part]]:
        """Return, by the start of a function, the findings in it when other functions jump into it.

        :param parts: starts of functions that are parts of others.
        """
        found: dict[int, list[Part]] = {}
        for one, result in self._results.all():
            if one not in parts:
                for start, part in result.elsewhere.items():
                    found.setdefault(start, []).append(part)
        return found

    def _called_after_start(self, function: CodeRange) -> list[Part]:
        """Return the findings in a function if other functions call addresses after its start."""
        addresses = self._called_within.get(function.start)
        return [self._checker.called_at(function, sorted(addresses))] if addresses else []

    def _mistaken(self, elsewhere: Mapping[int, list[Part]]) -> set[int]:
        """Return the starts of functions that were wrongly taken for entered ones, but are parts of others.

        GCC may begin the unlikely part of a function with a `nop` before its landing pads, which has the row of an
        entry.  Interpreted from that start, rows are wrong that are right for the other function's frame.
        """
        return {
            start
            for start, parts in elsewhere.items()
            if not self._is_entered(start) and contradict(parts, self._results.get(start))
        }

    def _found(self, function: CodeRange, result: FunctionResult | None, others: list[Part]) -> _Found:
        """Return the countable results for one function.

        :param result: the findings from its start; ``None``: it is not entered there by a call.
        """
        if result is not None and not others:
            return _Found(result.instructions, result.counts, result.findings, result.unknown, result.wanted)
        part = self._whole(function, result, others)
        return _Found(
            len(set().union(*part.verdicts.values())),
            {table: counted(verdicts) for table, verdicts in part.verdicts.items() if verdicts},
            part.findings,
            unknown_in(part.verdicts),
            self._checker.wanted_of(part.verdicts, function),
        )

    def _whole(self, function: CodeRange, result: FunctionResult | None, others: list[Part]) -> Part:
        """Return the findings in a function that others jump into."""
        if result is not None:
            own = self._checker.part(function)
            others = [not_wrong(other, own) for other in others]
            return joined([reached(own, others), *others])
        # Instructions that nothing else reaches are unknown.
        found = joined(others)
        verdicts = {
            table: {**dict.fromkeys(known, NOT_REACHED), **found.verdicts.get(table, {})}
            for table, known in self._checker.unentered(function).verdicts.items()
        }
        return Part(verdicts, found.findings)


def _overwrites(store: Written, register: int, distance: int | None) -> bool:
    """Return whether a store through a register may overwrite a word at a distance from where that points."""
    return store.register == register and (distance is None or -_WORD < distance - store.offset < store.size)


def _worst(counts: Counts) -> Judgement:
    if counts.wrong:
        return Judgement.WRONG
    return Judgement.UNKNOWN if counts.unknown else Judgement.PROVED
