"""Makes SFrame tables smaller without a change of the format: entries share rows, and are not one for each function."""

from __future__ import annotations

from typing import NamedTuple

from sframe_unwind.address import Range
from sframe_unwind.sframe.encode import TableSpec, function_rows
from sframe_unwind.sframe.header import FDE_SIZES, SIZE
from sframe_unwind.sframe.sharing import with_shared_rows
from sframe_unwind.translation.dividing import IsPadding, divided

MAX_ROWS = 16
"""Rows of an entry, unless the caller says otherwise."""


class Sizes(NamedTuple):
    """Sizes of the section in bytes, after each technique."""

    plain: int
    """Each function has its own rows."""
    shared: int
    """Equal rows are shared, if they may be."""
    divided: int
    """Entries begin and end where that is smallest, too."""


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
    """What the table describes besides functions: the bytes between those that an entry is for."""


def compacted(table: TableSpec, is_padding: IsPadding, max_rows: int = MAX_ROWS, share: bool = True) -> Compact:
    """Return a table that gives the same rules and takes fewer bytes.

    :param table: sorted; no two functions overlap, and no row starts behind its function's end.
    :param max_rows: the most rows of an entry, unless it is for one function.
    :param share: entries may refer to the same rows.
    :raises EncodeError: a function cannot be encoded.
    """
    pieces = divided(table, is_padding, max_rows, share)
    anew = table._replace(functions=tuple(piece.entry for piece in pieces))
    shared, result = (with_shared_rows(table), with_shared_rows(anew)) if share else (table, anew)
    padding = tuple(gap for piece in pieces for gap in piece.padding)
    sizes = Sizes(_size(table), _size(shared), _size(result))
    return Compact(result, sizes, _cost(table), _cost(result), share, padding)


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
