"""Frame row entries (FREs), specification 2.4: start address, info byte, data words."""

from __future__ import annotations

import struct
from typing import Callable, Protocol, TypeVar

from sframe_unwind.errors import FormatError
from sframe_unwind.memory import STRUCT_MARKS, Data

WORD_SIZES = (1, 2, 4)
"""Length in bytes of a data word, by the info byte's bits 5 and 6; 3 is invalid."""

INVALID_SIZE = -1
WORDS_SIZE = tuple(
    (info >> 1 & 0xF) * WORD_SIZES[info >> 5 & 3] if info >> 5 & 3 < 3 else INVALID_SIZE for info in range(256)
)
"""Length in bytes of all data words of a row, by its info byte."""

_SIGNED = "bhi"
_WORD_STRUCTS = {
    (order, info): struct.Struct(f"{mark}{info >> 1 & 0xF}{_SIGNED[info >> 5 & 3]}")
    for order, mark in STRUCT_MARKS.items()
    for info in range(0, 128, 2)
    if info >> 5 & 3 < 3
}

Interpreted = TypeVar("Interpreted", covariant=True)


class Interpreter(Protocol[Interpreted]):
    """Turns the bytes of a row after its start address into what the caller wants of it."""

    def __getitem__(self, row: bytes, /) -> Interpreted: ...


def base_is_sp(info: int) -> bool:
    """Whether the CFA is computed from SP (``True``) or FP, specification 2.4.1."""
    return bool(info & 1)


def ra_signed(info: int) -> bool:
    """Whether the return address carries authorization bits (AArch64), specification 2.4.1."""
    return bool(info & 0x80)


def word_size(info: int) -> int:
    """Length in bytes of one data word of a row with this (valid) info byte."""
    return WORD_SIZES[info >> 5 & 3]


def words(row: bytes, byteorder: str) -> tuple[int, ...]:
    """Return the data words, signed, of a row given from its info byte on."""
    return _WORD_STRUCTS[byteorder, row[0] & 0x7E].unpack(row[1:])


def decode(
    data: Data,
    offset: int,
    limit: int,
    count: int,
    address_size: int,
    byteorder: str,
    interpret: Interpreter[Interpreted],
) -> tuple[list[int], list[Interpreted]]:
    """Decode the ``count`` rows of one function.

    Rows are interpreted through a mapping rather than a call because nearly all rows of a program are among
    a few dozen: a ``dict`` that fills itself makes a repeated row a single lookup.

    :param offset: section offset of the first row.
    :param limit: section offset of the end of the FRE sub-section.
    :returns: the start addresses (bytes from the function's start) and the interpreted rows.
    :raises FormatError: a row is malformed, reaches beyond ``limit`` or is out of order.
    """
    starts: list[int] = []
    rows: list[Interpreted] = []
    position, previous = offset, 0
    order: Callable[[bytes], int] = _from_little if byteorder == "little" else _from_big
    try:
        for _ in range(count):
            head = position + address_size
            if head >= limit:
                raise FormatError(f"row {len(starts)} of {count} starts beyond the FRE sub-section's end", position)
            start = data[position] if address_size == 1 else order(data[position:head])
            size = WORDS_SIZE[data[head]]
            if size < 0:
                raise FormatError(f"row {len(starts)}: info byte {data[head]:#x} has the invalid word size 3", head)
            end = head + 1 + size
            if end > limit:
                raise FormatError(f"row {len(starts)}: data words end beyond the FRE sub-section's end", position)
            if start < previous:
                raise FormatError(f"row {len(starts)} starts at {start:#x}, before its predecessor", position)
            rows.append(interpret[data[head:end]])
            starts.append(start)
            position, previous = end, start
    except FormatError as error:
        raise error.at(position) from None
    except IndexError:
        raise FormatError(f"row {len(starts)} of {count} lies beyond the section's end", position) from None
    return starts, rows


def _from_little(raw: bytes) -> int:
    return int.from_bytes(raw, "little")


def _from_big(raw: bytes) -> int:
    return int.from_bytes(raw, "big")
