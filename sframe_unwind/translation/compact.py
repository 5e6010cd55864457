"""Makes SFrame tables smaller within the format: entries share rows, and one entry can serve several functions."""

from __future__ import annotations

from sframe_unwind.address import Range
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.sframe.encode import TableSpec, function_rows
from sframe_unwind.sframe.header import FDE_SIZES, SIZES
from sframe_unwind.sframe.sharing import with_shared_rows
from sframe_unwind.translation.dividing import IsPadding, divided

MAX_ROWS = 16
"""Default of the maximum number of rows of an entry that serves several functions."""


class Sizes(NamedTuple):
    """Size of the section in bytes, after each technique."""

    plain: int
    """The size if each function has its own rows."""
    shared: int
    """The size if equal rows are shared, as far as that is permitted."""
    divided: int
    """The size if entries also begin and end where the section becomes smallest."""


class Cost(NamedTuple):
    """The cost of lookups."""

    entries: int
    """Number of FDEs."""
    rows_read: float
    """Number of rows that a lookup reads, from the first row of an entry on: the mean over all bytes of code."""
    most_rows: int
    """Number of rows of the longest entry."""


class Compact(NamedTuple):
    """A table that was made smaller."""

    table: TableSpec
    sizes: Sizes
    before: Cost
    after: Cost
    shares_rows: bool
    """Functions may refer to the same rows."""
    padding: tuple[Range, ...]
    """The bytes between functions that share an entry: the table describes them, too."""


def compacted(table: TableSpec, is_padding: IsPadding, max_rows: int = MAX_ROWS, share: bool = True) -> Compact:
    """Return a table that gives the same rules and takes fewer bytes.

    :param table: sorted; no two functions overlap, and no row starts after its function's end.
    :param max_rows: maximum number of rows of an entry that serves several functions.
    :param share: entries may refer to the same rows.
    :raises EncodeError: a function cannot be encoded.
    """
    pieces = divided(table, is_padding, max_rows, share)
    anew = table._replace(functions=tuple(piece.entry for piece in pieces))
    shared, result = (with_shared_rows(table), with_shared_rows(anew)) if share else (table, anew)
    padding = tuple(gap for piece in pieces for gap in piece.padding)
    sizes = Sizes(_size(table), _size(shared), _size(result))
    return Compact(
        table=result, sizes=sizes, before=_cost(table), after=_cost(result), shares_rows=share, padding=padding
    )


def _size(table: TableSpec) -> int:
    """Return the size of a table in bytes."""
    at = 0
    for one in table.functions:
        size = len(function_rows(table, one, "function"))
        start = at if one.rows_at is None else one.rows_at
        at = max(at, start + size)
    return SIZES[table.version] + len(table.functions) * FDE_SIZES[table.version] + at


def _cost(table: TableSpec) -> Cost:
    read = code = 0
    for one in table.functions:
        length = one.repetition_size or one.size
        ends = [*(row.start for row in one.rows[1:]), length]
        covered = [min(end, length) - min(row.start, length) for row, end in zip(one.rows, ends)]
        read += sum(number * size for number, size in enumerate(covered, 1)) * one.size // max(length, 1)
        code += one.size
    return Cost(len(table.functions), read / max(code, 1), max((len(one.rows) for one in table.functions), default=0))
