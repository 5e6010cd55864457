"""The results of a file's functions, in little memory: a library of 100 MB has 100,000 functions."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

from sframe_unwind.code.image.ranges import Addresses, CodeRanges
from sframe_unwind.code.judge.findings import FunctionResult, FunctionVerdict, Part, Verdicts
from sframe_unwind.code.judge.judgement import PROVED, Judgement, Judgements


class ProvedAt(Mapping[int, Judgements]):
    """The verdicts on instructions at which a table is proved throughout.

    :param addresses: of the instructions.
    """

    def __init__(self, addresses: Iterable[int]) -> None:
        self._addresses = Addresses(addresses)

    def __getitem__(self, address: int) -> Judgements:
        if address in self._addresses:
            return PROVED
        raise KeyError(address)

    def __iter__(self) -> Iterator[int]:
        return iter(self._addresses)

    def __len__(self) -> int:
        return len(self._addresses)


class Pool:
    """Keeps the distinct results of functions, without addresses: most results are then equal to another one."""

    def __init__(self) -> None:
        self._known: dict[Any, FunctionResult] = {}

    def common(self, result: FunctionResult) -> FunctionResult:
        """Return a result as that of a function which lies at address 0 and calls nothing."""
        result = result.at(0)
        if result.wanted or result.elsewhere:
            return result._replace(elsewhere={start: _packed(part) for start, part in result.elsewhere.items()})
        key = result._replace(counts=(), wanted=(), elsewhere=()), *result.counts.items()  # type: ignore[arg-type]
        return self._known.setdefault(key, result)


def _packed(part: Part) -> Part:
    return part._replace(verdicts={table: _in_few_bytes(verdicts) for table, verdicts in part.verdicts.items()})


def _in_few_bytes(verdicts: Verdicts) -> Verdicts:
    return ProvedAt(verdicts) if all(judged is PROVED for judged in verdicts.values()) else verdicts


class Results:
    """Results, in the order of the functions' addresses.

    :param ranges: of all functions of the file.
    """

    def __init__(self, ranges: CodeRanges, pool: Pool) -> None:
        self._ranges = ranges
        self._pool = pool
        self._common: list[FunctionResult | None] = [None] * len(ranges)
        self._called = array("L")
        """Numbers of functions."""
        self._calls = array("Q", [0]) * (2 * len(ranges))
        """For each function, the begin and the end (exclusive) of its callees in the array above."""

    def add(self, result: FunctionResult) -> None:
        """Take the result of one function, in place of an earlier one."""
        at = self._number(result.start)
        self._common[at] = self._pool.common(result)
        self._calls[2 * at] = len(self._called)
        self._called.extend(map(self._number, result.called))
        self._calls[2 * at + 1] = len(self._called)

    def _number(self, start: int) -> int:
        """Return the number of the function that starts at an address."""
        return bisect_left(self._ranges.starts, start)

    def all(self) -> Iterator[tuple[int, FunctionResult]]:
        """Yield the start of each function, and its result in the form of :meth:`Pool.common`."""
        return ((start, found) for start, found in zip(self._ranges.starts, self._common) if found is not None)

    def get(self, start: int) -> FunctionResult | None:
        """Return the result of the function that starts at an address, without its calls; ``None``: there is none."""
        at = self._number(start)
        found = self._common[at] if at < len(self._common) and self._ranges.starts[at] == start else None
        return None if found is None else found.at(start)

    def called(self, start: int) -> list[int]:
        """Return the starts of the callees of a function that has a result."""
        at = self._number(start)
        first, end = self._calls[2 * at : 2 * at + 2]
        return [self._ranges.starts[one] for one in self._called[first:end]]


class FunctionVerdicts(Sequence[FunctionVerdict]):
    """The verdicts on functions, in few bytes.

    :param ranges: of all functions of the file.
    :param numbers: the numbers of these functions.
    """

    def __init__(self, ranges: CodeRanges, numbers: Sequence[int]) -> None:
        self._ranges = ranges
        self._numbers = numbers
        self._known: dict[Any, Mapping[str, Judgement]] = {}
        self._worst: list[Mapping[str, Judgement]] = []

    def add(self, worst: Mapping[str, Judgement]) -> None:
        """Add the worst judgement of the next function, by table."""
        self._worst.append(self._known.setdefault(tuple(worst.items()), worst))

    @overload
    def __getitem__(self, number: int) -> FunctionVerdict: ...

    @overload
    def __getitem__(self, number: slice) -> Sequence[FunctionVerdict]: ...

    def __getitem__(self, number: int | slice) -> FunctionVerdict | Sequence[FunctionVerdict]:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        return FunctionVerdict(*self._ranges[self._numbers[number]], self._worst[number])

    def __len__(self) -> int:
        return len(self._worst)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionVerdicts) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]
