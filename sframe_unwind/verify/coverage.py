"""Finds the addresses of a function that only one of the two tables describes."""

from __future__ import annotations

from sframe_unwind.address import Range
from sframe_unwind.errors import FormatError
from sframe_unwind.sframe import table
from sframe_unwind.sframe.constants import PcType

_MAX_BLOCKS = 1 << 16
"""Maximum number of blocks of a mask function whose rows begin after the block's start: twice the number of entries in
an AMD64 PLT of the largest programs.  Linkers write a row at offset 0, and then blocks are not counted."""


def described_ranges(function: table.Function) -> list[Range]:
    """Return the addresses for which a function has a row: all of them, except those before its first row.

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
