"""Encodings of the values of attributes (DWARF 5, 7.5.5 and 7.5.6; GNU's forms for split and supplementary files).

A value that is not needed is skipped by a *step*: its size in bytes, or one of the negative numbers below if the size
depends on the value.  Consecutive sizes are added up, so that most entries are skipped by one addition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from sframe_unwind.address import WORD_SIZE, ByteOrder
from sframe_unwind.cfi.leb128 import read_sleb128, read_uleb128
from sframe_unwind.errors import FormatError
from sframe_unwind.named_tuple import NamedTuple

LEB128, STRING, BLOCK, BLOCK1, BLOCK2, BLOCK4 = range(-1, -7, -1)
"""Steps over a number of variable length, a string, and blocks with a length of variable length or of 1, 2, 4 bytes."""
_LENGTHS = {BLOCK1: 1, BLOCK2: 2, BLOCK4: 4}

ADDR, DATA16, SDATA, IMPLICIT_CONST, REF_ADDR = 0x01, 0x1E, 0x0D, 0x21, 0x10
SEC_OFFSET, RNGLISTX, INLINE_STRING = 0x17, 0x23, 0x08
ADDRESS_INDEXES = frozenset((0x1B, 0x29, 0x2A, 0x2B, 0x2C, 0x1F01))
"""``DW_FORM_addrx`` and its kin: indexes of ``.debug_addr``."""
STRING_INDEXES = frozenset((0x1A, 0x25, 0x26, 0x27, 0x28, 0x1F02))
"""``DW_FORM_strx`` and its kin: indexes of ``.debug_str_offsets``."""
STRING_OFFSETS = {0x0E: ".debug_str", 0x1F: ".debug_line_str"}
"""``DW_FORM_strp`` and ``DW_FORM_line_strp``, with the section to which the offset refers."""
UNIT_REFERENCES = frozenset((0x11, 0x12, 0x13, 0x14, 0x15))
"""``DW_FORM_ref1`` to ``DW_FORM_ref_udata``: offsets in the unit."""

_FIXED = {
    ADDR: WORD_SIZE,
    0x0B: 1,
    0x05: 2,
    0x06: 4,
    0x07: 8,
    DATA16: 16,  # data1 to data16
    0x0C: 1,
    0x19: 0,
    IMPLICIT_CONST: 0,  # flags
    0x11: 1,
    0x12: 2,
    0x13: 4,
    0x14: 8,
    0x20: 8,
    0x1C: 4,
    0x24: 8,  # references, and those by signature
    0x29: 1,
    0x2A: 2,
    0x2B: 3,
    0x2C: 4,
    0x25: 1,
    0x26: 2,
    0x27: 3,
    0x28: 4,  # indexes
}
_OFFSETS = (SEC_OFFSET, *STRING_OFFSETS, 0x1D, 0x1F20, 0x1F21)
"""Forms with the size of an offset; the last three refer to a supplementary file."""
_VARIABLE = {
    **dict.fromkeys((0x0F, SDATA, 0x15, 0x1A, 0x1B, 0x22, RNGLISTX, 0x1F01, 0x1F02), LEB128),
    INLINE_STRING: STRING,
    0x09: BLOCK,
    0x18: BLOCK,
    0x0A: BLOCK1,
    0x03: BLOCK2,
    0x04: BLOCK4,
}


class Encoding(NamedTuple):
    """The properties on which the encodings of a unit, or of a line number program, depend."""

    byteorder: ByteOrder
    version: int
    offset_size: int
    """Size in bytes: 4, or 8 in the 64-bit format."""


class Value(NamedTuple):
    """The value of an attribute."""

    form: int
    """``DW_FORM_*``."""
    number: int
    """The value as a number; for a string or block in place, its offset in the decoded data."""


@cache
def steps_of(encoding: Encoding) -> Mapping[int, int]:
    """Return the step over a value of each form."""
    reference = WORD_SIZE if encoding.version == 2 else encoding.offset_size
    return {**_FIXED, **_VARIABLE, **dict.fromkeys(_OFFSETS, encoding.offset_size), REF_ADDR: reference}


def append(steps: list[int], step: int) -> None:
    """Append a step; a size is added to a preceding size."""
    if step > 0 and steps and steps[-1] > 0:
        steps[-1] += step
    elif step:
        steps.append(step)


def end_of(data: bytes, at: int, steps: Iterable[int], byteorder: ByteOrder) -> int:
    """Return the offset after some values.

    :raises IndexError: the data ends, unless it does so within a value of known size.
    :raises ValueError: it ends within a string.
    """
    for step in steps:
        if step >= 0:
            at += step
        elif step == LEB128:
            while data[at] > 0x7F:
                at += 1
            at += 1
        elif step == STRING:
            at = data.index(0, at) + 1
        elif step == BLOCK:
            length, at = read_uleb128(data, at)
            at += length
        else:
            size = _LENGTHS[step]
            at += size + int.from_bytes(data[at : at + size], byteorder)
    return at


def number(data: bytes, at: int, form: int, step: int, byteorder: ByteOrder) -> int:
    """Return the number of a :class:`Value`.

    :param step: the step over the value, see :func:`steps_of`.
    :raises FormatError: the data ends within it.
    """
    if step > 0:
        if at + step > len(data):
            raise FormatError("the data ends within a value")
        return int.from_bytes(data[at : at + step], byteorder)
    if step == LEB128:
        return (read_sleb128 if form == SDATA else read_uleb128)(data, at)[0]
    return at
