"""Functions to encode."""

from __future__ import annotations

from sframe_unwind.sframe.constants import AbiNumber
from sframe_unwind.sframe.encode import FunctionSpec, RowSpec

AMD64 = AbiNumber.AMD64_ENDIAN_LITTLE


def function(start: int, size: int, *rows: tuple[int, int]) -> FunctionSpec:
    """Return a function whose rows have the given starts and CFA offsets from SP."""
    return FunctionSpec(start, size, tuple(RowSpec(at, 0x03, (offset,)) for at, offset in rows))
