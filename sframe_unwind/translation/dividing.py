"""Chooses where the entries (FDEs) of a table begin and end, so that it takes the fewest bytes.

A search needs the entry for an address, not the function.  So an entry can cover several functions and the padding
between them, or a part of a function.  It can begin wherever the rule changes; the addresses of its rows count from
there.  This saves

- entries, if functions are small;
- rows, because many functions begin and end alike, and entries with the same rows refer to one copy;
- bytes of row addresses, if functions are large.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Callable

from sframe_unwind.address import Range
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.sframe import fre
from sframe_unwind.sframe.constants import PcType
from sframe_unwind.sframe.encode import FunctionSpec, RowSpec, TableSpec, record_size
from sframe_unwind.sframe.header import FDE_SIZES

IsPadding = Callable[[int, int], bool]
"""``(end of a function, start of the next one)``: returns whether both are in one section of code, and only padding
is between them."""
_ROUNDS = 3
"""Number of rounds.  Each round counts anew which rows are shared.  A fourth round would save a tenth of a percent."""


class Piece(NamedTuple):
    """One entry."""

    entry: FunctionSpec
    padding: tuple[Range, ...] = ()
    """The bytes that it describes besides functions."""


class _Row(NamedTuple):
    """A row, and the code that it applies to."""

    address: int
    end: int
    row: RowSpec
    size: int
    """Size of info byte and words, in bytes."""
    repeats: bool
    """Whether its rule is equal to that of the previous row, so that an entry with both needs only one row."""


class _Group(NamedTuple):
    """The rows of one entry: those from index ``first`` to before ``end``."""

    first: int
    end: int
    name: int | None
    """A number that is equal for groups with the same rows; ``None``: no other group can have the same."""
    size: int
    """Size in bytes, without the FDE."""


_NO_GROUP = _Group(0, 0, None, 0)


def divided(table: TableSpec, is_padding: IsPadding, max_rows: int, share: bool) -> list[Piece]:
    """Return entries that give the same rules as the functions of a table, in the order of their addresses.

    :param table: sorted; no two functions overlap.
    :param max_rows: the most rows of an entry, unless it describes a single function.
    :param share: entries with the same rows refer to one copy of them.
    """
    pieces: list[Piece] = []
    runs: list[list[FunctionSpec]] = []
    for function in table.functions:
        if not _is_divisible(function):
            pieces.append(Piece(function))
        elif runs and _may_follow(runs[-1][-1], function) and is_padding(_end(runs[-1][-1]), function.start):
            runs[-1].append(function)
        else:
            runs.append([function])
    return sorted([*pieces, *_Division(table, runs, max_rows, share).pieces()], key=lambda piece: piece.entry.start)


def _is_divisible(function: FunctionSpec) -> bool:
    """Return whether each row applies from its address to that of the next one."""
    has_rows = bool(function.rows) and not function.rows[0].start and function.size > 0
    return has_rows and function.pc_type is PcType.INC and not function.signal


def _may_follow(one: FunctionSpec, following: FunctionSpec) -> bool:
    return (one.fde_type, one.pauth_key) == (following.fde_type, following.pauth_key)


def _end(function: FunctionSpec) -> int:
    return function.start + function.size


class _Division:
    """Divides runs of functions with nothing but padding between them.

    An entry costs an FDE, and the size of its rows divided by the number of entries that share them.  These numbers
    depend on the division, so several rounds compute it.  The first round counts how often rows follow each other; each
    other round counts in the previous division.  For given numbers, dynamic programming finds the cheapest division.
    """

    def __init__(self, table: TableSpec, runs: Sequence[Sequence[FunctionSpec]], max_rows: int, share: bool) -> None:
        self._fde_size = FDE_SIZES[table.version]
        self._record_size = record_size(table.version)
        self._max_rows = max_rows
        self._rows: list[_Row] = []
        self._runs: list[tuple[int, int, FunctionSpec]] = []
        """The indexes at which the rows of each run begin and end (exclusive), and its first function."""
        self._function_ends: dict[int, int] = {}
        """Maps the index at which the rows of a function begin to the one at which they end (exclusive)."""
        for run in runs:
            first = len(self._rows)
            for function in run:
                at = len(self._rows)
                self._rows += _rows_of(function, self._rows[-1] if at > first else None)
                self._function_ends[at] = len(self._rows)
            self._runs.append((first, len(self._rows), run[0]))
        self._users: Counter[int] = Counter()
        """Number of entries that have the rows of each name."""
        self._names: list[list[int]] = [[] for _ in self._rows]
        """For each row, the names of the groups of one, two, ... rows from it on, as long as another group is equal."""
        if share:
            self._name_groups()

    def pieces(self) -> Iterator[Piece]:
        """Yield the entries."""
        best: tuple[int, list[list[_Group]]] | None = None
        for _ in range(_ROUNDS):
            groups = [self._groups(first, end) for first, end, _ in self._runs]
            total = self._total(groups)
            if best is None or total < best[0]:
                best = total, groups
            self._users = Counter(group.name for run in groups for group in run if group.name is not None)
        assert best is not None  # there is at least one round
        for run, (_, _, function) in zip(best[1], self._runs):
            for group in run:
                yield self._piece(group, function)

    def _name_groups(self) -> None:
        """Name the groups of rows, and count the groups of each name."""
        numbers: dict[object, int] = {}
        growing: list[tuple[int, int, int, int]] = []
        for first, end, function in self._runs:
            kind = numbers.setdefault((function.fde_type, function.pauth_key), len(numbers))
            growing += ((at, at, end, kind) for at in range(first, end))
        while growing:
            named = []
            for first, at, end, name in growing:
                row = self._rows[at]
                key = name, row.address - self._rows[first].address, row.row.info, row.row.words
                named.append((first, at + 1, end, numbers.setdefault(key, len(numbers))))
            counts = Counter(name for _, _, _, name in named)
            growing = []
            for first, at, end, name in named:
                if counts[name] > 1:
                    self._users[name] = counts[name]
                    self._names[first].append(name)
                    while at < end and self._rows[at].repeats:
                        at += 1
                    if at < end and len(self._names[first]) < self._most_rows(first):
                        growing.append((first, at, end, name))

    def _most_rows(self, first: int) -> int:
        return max(self._max_rows, self._function_ends.get(first, first) - first)

    def _groups(self, first: int, end: int) -> list[_Group]:
        """Return the cheapest division of a run."""
        rows, users = self._rows, self._users
        costs = [0.0] + [float("inf")] * (end - first)
        chosen: list[_Group] = [_NO_GROUP] * (end - first + 1)
        for start in range(first, end):
            base = costs[start - first] + self._fde_size
            names, origin = self._names[start], rows[start].address
            function_end, most = self._function_ends.get(start), self._most_rows(start)
            size, width, count = self._record_size, 1, 0
            for at in range(start, end):
                row = rows[at]
                if at == start or not row.repeats:
                    if count == most:
                        break
                    count += 1
                    size += row.size
                    offset = row.address - origin
                    width = 1 if offset < 1 << 8 else 2 if offset < 1 << 16 else 4
                if count > self._max_rows and at + 1 != function_end:
                    continue
                name = names[count - 1] if count <= len(names) else None
                total = size + width * count
                cost = base + (total if name is None else total / max(users[name], 1))
                if cost < costs[at + 1 - first]:
                    costs[at + 1 - first] = cost
                    chosen[at + 1 - first] = _Group(start, at + 1, name, total)
        groups: list[_Group] = []
        at = end
        while at > first:
            groups.append(chosen[at - first])
            at = groups[-1].first
        return groups[::-1]

    def _total(self, runs: Sequence[Sequence[_Group]]) -> int:
        """Return the size of the entries and their rows in bytes."""
        shared = {group.name: group.size for run in runs for group in run if group.name is not None}
        alone = sum(group.size for run in runs for group in run if group.name is None)
        return self._fde_size * sum(map(len, runs)) + sum(shared.values()) + alone

    def _piece(self, group: _Group, function: FunctionSpec) -> Piece:
        """Return an entry.

        :param function: a function of its run; the entry gets its attributes.
        """
        rows = self._rows[group.first : group.end]
        start = rows[0].address
        shown = [row.row._replace(start=row.address - start) for row in rows if row is rows[0] or not row.repeats]
        entry = function._replace(
            start=start, size=rows[-1].end - start, rows=tuple(shown), address_size=None, rows_at=None
        )
        gaps = ((row.end, following.address) for row, following in zip(rows, rows[1:]))
        return Piece(entry, tuple(gap for gap in gaps if gap[0] < gap[1]))


def _rows_of(function: FunctionSpec, before: _Row | None) -> Iterator[_Row]:
    """Yield the rows of a function that apply to any of its code.

    :param before: the last row of the function before it, in the same run.
    """
    said = None if before is None else (before.row.info, before.row.words)
    ends = [*(row.start for row in function.rows[1:]), function.size]
    for row, end in zip(function.rows, ends):
        end = min(end, function.size)
        if row.start < end:
            size = 1 + len(row.words) * fre.word_size(row.info)
            repeats = (row.info, row.words) == said
            said = row.info, row.words
            yield _Row(function.start + row.start, function.start + end, row, size, repeats)
