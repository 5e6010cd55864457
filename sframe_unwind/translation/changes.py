"""Lists the rules of two tables for the same code, side by side at each address at which either changes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Optional

from sframe_unwind.cfi.rules import Said
from sframe_unwind.named_tuple import NamedTuple

Rules = tuple[Sequence[int], Sequence[Optional[Said]]]
"""The start of each row, in bytes from the start of its function, and its rule; ``None``: the row has no rule."""


class Change(NamedTuple):
    """The rules of both tables at one address; ``None``: the table has none."""

    pc: int
    one: Said | None
    other: Said | None


def at_changes(one: Rules, other: Rules, one_start: int, other_start: int, low: int, high: int) -> Iterator[Change]:
    """Yield each address of ``[low, high)`` at which a row of either table begins, the first address included.

    :param one_start: address that the offsets of ``one`` count from.
    :param other_start: address that the offsets of ``other`` count from.
    """
    changes = {low, *(one_start + offset for offset in one[0]), *(other_start + offset for offset in other[0])}
    for pc in sorted(changes):
        if low <= pc < high:
            yield Change(pc, _rule_at(one, pc - one_start), _rule_at(other, pc - other_start))


def _rule_at(rows: Rules, offset: int) -> Said | None:
    at = bisect_right(rows[0], offset) - 1
    return rows[1][at] if at >= 0 else None
