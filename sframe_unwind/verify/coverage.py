"""Which addresses of a function one of the two tables leaves out, while the other describes them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from sframe_unwind.errors import FormatError
from sframe_unwind.sframe import table
from sframe_unwind.sframe.constants import PcType

Range = tuple[int, int]
"""Start and end address (exclusive)."""

_MAX_BLOCKS = 1 << 16
"""Of one mask function whose rows begin behind the start of the block: twice as many as an AMD64 PLT has entries in
the largest programs.  A linker writes a row at offset 0, and then blocks are not counted."""


def described_ranges(function: table.Function) -> list[Range]:
    """Return the addresses for which a function has a row: all, but for what precedes its first row.

    :raises FormatError: a row is malformed, or a mask function has too many blocks.
    """
    starts, _ = function.table.rows(function)
    first = starts[0]
    if function.fde.pc_type is not PcType.MASK:
        return [(min(function.start + first, function.end), function.end)]
    if not first:
        return [(function.start, function.end)]
    size = function.fde.repetition_size
    if function.fde.size > _MAX_BLOCKS * size:
        raise FormatError(f"function at {function.start:#x}: {function.fde.size // size:,} blocks without a first row")
    blocks = range(function.start, function.end, size)
    return [(block + first, min(block + size, function.end)) for block in blocks if block + first < function.end]


def merged(ranges: Iterable[Range]) -> list[Range]:
    """Return what ranges cover, in order and without overlaps."""
    result: list[Range] = []
    for start, end in sorted(ranges):
        if result and start <= result[-1][1]:
            result[-1] = result[-1][0], max(end, result[-1][1])
        else:
            result.append((start, end))
    return result


def overlap(ranges: Iterable[Range], covered: list[Range]) -> int:
    """Return how many bytes of ranges, none of which overlaps another, are covered.

    :param covered: in order and without overlaps.
    """
    total = 0
    for start, end in ranges:
        for low, high in _reaching_into(start, end, covered):
            total += max(min(end, high) - max(start, low), 0)
    return total


def gaps(whole: Range, covered: list[Range]) -> list[Range]:
    """Return the parts of a range that are not covered, in order.

    :param covered: in order and without overlaps.
    """
    start, end = whole
    found = []
    for low, high in _reaching_into(start, end, covered):
        if high <= start:
            continue
        if start < low:
            found.append((start, low))
        start = high
    return [*found, (start, end)] if start < end else found


def _reaching_into(start: int, end: int, covered: list[Range]) -> list[Range]:
    return covered[max(bisect_right(covered, (start,)) - 1, 0) : bisect_left(covered, (end,))]
