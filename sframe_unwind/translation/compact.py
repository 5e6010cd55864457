"""Makes SFrame tables smaller: rows are shared, and functions next to each other become one entry.

The format stays the same.  A lookup needs the rule for an address and not the function, so an entry can cover several
functions, and the padding between them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Callable, NamedTuple

from sframe_unwind.address import Range
from sframe_unwind.sframe.constants import PcType
from sframe_unwind.sframe.encode import FunctionSpec, RowSpec, TableSpec, function_rows
from sframe_unwind.sframe.header import FDE_SIZES, SIZE
from sframe_unwind.sframe.sharing import with_shared_rows

MAX_ROWS = 8
"""Rows of an entry for several functions, unless the caller says otherwise."""
_MAX_FUNCTIONS = 64
"""That one entry covers."""


class Sizes(NamedTuple):
    """Sizes of the section in bytes, after each technique."""

    plain: int
    """Each function has its own rows."""
    shared: int
    """Equal rows are shared, if they may be."""
    merged: int
    """Neighbours are merged too."""


class Cost(NamedTuple):
    """What a search costs."""

    entries: int
    """FDEs."""
    rows_read: float
    """How many rows a lookup reads from the first row of an entry on; the mean over all bytes of code."""
    most_rows: int
    """Rows of the longest entry."""


class Compact(NamedTuple):
    """A table that was made smaller."""

    table: TableSpec
    sizes: Sizes
    before: Cost
    after: Cost
    shares_rows: bool
    """Functions may refer to the same rows."""
    padding: tuple[Range, ...]
    """What the table describes besides functions: the bytes between those that share an entry."""


def compacted(
    table: TableSpec, is_padding: Callable[[int, int], bool], max_rows: int = MAX_ROWS, share: bool = True
) -> Compact:
    """Return a table that gives the same rules and takes fewer bytes.

    :param table: sorted; no two functions overlap, and no row starts behind its function's end.
    :param is_padding: ``(end of a function, start of the next one)``: whether both are in one section of code, and
        there is nothing but padding between them.
    :param max_rows: the most rows that an entry for several functions may have.
    :param share: functions may refer to the same rows.
    :raises EncodeError: a function cannot be encoded.
    """
    groups = _Merging(table, is_padding, max_rows, share).groups()
    merged = table._replace(functions=tuple(_merged(group) for group in groups))
    shared, result = (with_shared_rows(table), with_shared_rows(merged)) if share else (table, merged)
    padding = ((one.start + one.size, following.start) for group in groups for one, following in zip(group, group[1:]))
    return Compact(
        result,
        Sizes(_size(table), _size(shared), _size(result)),
        _cost(table),
        _cost(result),
        share,
        tuple((start, end) for start, end in padding if start < end),
    )


class _Merging:
    """Chooses which neighbours share an entry, so that the section becomes as small as possible.

    An entry of its own costs a function the bytes of an FDE, and its rows, divided by the number of functions that
    have the same rows.  The sum of the costs is minimised by dynamic programming.
    """

    def __init__(self, table: TableSpec, is_padding: Callable[[int, int], bool], max_rows: int, share: bool) -> None:
        self._table = table
        self._functions = table.functions
        self._is_padding = is_padding
        self._max_rows = max_rows
        self._bytes = [self._rows_of(one) for one in self._functions]
        self._sharers = Counter(self._bytes if share else ())

    def groups(self) -> list[Sequence[FunctionSpec]]:
        """Return the functions, those together that share an entry."""
        count = len(self._functions)
        best = [0.0] + [float("inf")] * count
        origin = [0] * (count + 1)
        for first in range(count):
            for end, cost in self._candidates(first):
                total = best[first] + FDE_SIZES[self._table.version] + cost
                if total < best[end]:
                    best[end], origin[end] = total, first
        groups: list[Sequence[FunctionSpec]] = []
        end = count
        while end:
            groups.append(self._functions[origin[end] : end])
            end = origin[end]
        return groups[::-1]

    def _candidates(self, first: int) -> Iterator[tuple[int, float]]:
        """Yield how far an entry may reach that begins with a function, and what its rows cost."""
        own = self._bytes[first]
        yield first + 1, len(own) / max(self._sharers[own], 1)
        merged = self._functions[first]
        for number in range(first + 1, min(first + _MAX_FUNCTIONS, len(self._functions))):
            if not self._may_follow(self._functions[number - 1], self._functions[number]):
                return
            merged = _merged((merged, self._functions[number]))
            if len(merged.rows) > self._max_rows:
                return
            rows = self._rows_of(merged)
            yield number + 1, len(rows) / max(self._sharers[rows], 1)

    def _may_follow(self, one: FunctionSpec, following: FunctionSpec) -> bool:
        end = one.start + one.size
        return (
            _attributes(one) == _attributes(following)
            and one.pc_type is PcType.INC
            and not one.signal
            and all(function.rows and not function.rows[0].start for function in (one, following))
            and self._is_padding(end, following.start)
        )

    def _rows_of(self, function: FunctionSpec) -> bytes:
        return function_rows(self._table, function, f"function at {function.start:#x}")


def _attributes(function: FunctionSpec) -> tuple[object, ...]:
    return function.pc_type, function.fde_type, function.pauth_key, function.signal


def _merged(group: Sequence[FunctionSpec]) -> FunctionSpec:
    """Return one entry for functions; a row that repeats the one before it disappears."""
    first, last = group[0], group[-1]
    if first is last:
        return first
    rows: list[RowSpec] = []
    for function in group:
        for row in function.rows:
            if not rows or (row.info, row.words) != (rows[-1].info, rows[-1].words):
                rows.append(row._replace(start=row.start + function.start - first.start))
    return first._replace(size=last.start + last.size - first.start, rows=tuple(rows), address_size=None)


def _size(table: TableSpec) -> int:
    """Return the size of a table in bytes."""
    at = 0
    for one in table.functions:
        size = len(function_rows(table, one, "function"))
        start = at if one.rows_at is None else one.rows_at
        at = max(at, start + size)
    return SIZE + len(table.functions) * FDE_SIZES[table.version] + at


def _cost(table: TableSpec) -> Cost:
    read = code = 0
    for one in table.functions:
        length = one.repetition_size or one.size
        ends = [*(row.start for row in one.rows[1:]), length]
        covered = [min(end, length) - min(row.start, length) for row, end in zip(one.rows, ends)]
        read += sum(number * size for number, size in enumerate(covered, 1)) * one.size // max(length, 1)
        code += one.size
    return Cost(len(table.functions), read / max(code, 1), max((len(one.rows) for one in table.functions), default=0))
