"""Frame row entries (FREs), V2 errata 1, 2.4: start address, info byte, data words."""

from __future__ import annotations

import struct
from typing import Callable, Protocol, TypeVar

from sframe_unwind.errors import FormatError
from sframe_unwind.memory import STRUCT_MARKS, Data

WORD_SIZES = (1, 2, 4)
"""Size of a data word in bytes, by bits 5 and 6 of the info byte; the value 3 is invalid (V2 errata 1, 2.4.1)."""

MIN_ROW_SIZE = 2
"""Size in bytes of the shortest row: a start address of one byte and the info byte (V2 errata 1, 2.4)."""

MAX_SHARED_ROWS = 32
"""How many rows each function of a table may share with others, on average.  A limit of this project: if all functions
claimed the same long list of rows, reading them would take time that grows with the square of the section's size."""

INVALID_SIZE = 1 << 62  # ends beyond every section, so one comparison finds both
WORDS_SIZE = tuple(
    (info >> 1 & 0xF) * WORD_SIZES[info >> 5 & 3] if info >> 5 & 3 < 3 else INVALID_SIZE for info in range(256)
)
"""Size of all data words of a row in bytes, by its info byte."""

_SIGNED = "bhi"
_WORD_STRUCTS = {
    (order, info): struct.Struct(f"{mark}{info >> 1 & 0xF}{_SIGNED[info >> 5 & 3]}")
    for order, mark in STRUCT_MARKS.items()
    for info in range(0, 128, 2)
    if info >> 5 & 3 < 3
}

Interpreted = TypeVar("Interpreted", covariant=True)


class Interpreter(Protocol[Interpreted]):
    """Converts the bytes of a row, without its start address, to the form that the caller needs."""

    def __getitem__(self, row: bytes, /) -> Interpreted: ...


def most_rows(fre_size: int, num_fdes: int) -> int:
    """Return how many rows the functions of a table can have together, some of which they may share.

    :param fre_size: of the FRE sub-section, in bytes.
    """
    return fre_size // MIN_ROW_SIZE + MAX_SHARED_ROWS * num_fdes


def base_is_sp(info: int) -> bool:
    """Return whether the CFA is computed from SP; otherwise it is computed from FP (V2 errata 1, 2.4.1)."""
    return bool(info & 1)


def ra_signed(info: int) -> bool:
    """Return whether the return address carries an authentication code (AArch64, V2 errata 1, 2.4.1)."""
    return bool(info & 0x80)


def word_size(info: int) -> int:
    """Return the size of one data word in bytes, for a valid info byte."""
    return WORD_SIZES[info >> 5 & 3]


def words(row: bytes, byteorder: str) -> tuple[int, ...]:
    """Return the data words of a row, signed.

    :param row: the bytes of the row, starting with the info byte.
    """
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
    """Decode the rows of one function.

    The interpreter is a mapping and not a function because a program has a few dozen distinct rows: with a ``dict``
    that computes missing values, a repeated row costs one dictionary lookup.

    :param data: the whole section.
    :param offset: section offset of the first row, in bytes.
    :param limit: section offset of the end of the FRE sub-section, in bytes.
    :param count: number of rows.
    :param address_size: size of the start address of a row in bytes.
    :returns: the start addresses (in bytes from the start of the function) and the interpreted rows.
    :raises FormatError: a row is malformed, ends after ``limit`` or is out of order.
    """
    starts: list[int] = []
    rows: list[Interpreted] = []
    position, previous = offset, 0
    order: Callable[[bytes], int] = _from_little if byteorder == "little" else _from_big
    try:
        for _ in range(count):
            head = position + address_size
            start = data[position] if address_size == 1 else order(data[position:head])
            size = WORDS_SIZE[data[head]]
            end = head + 1 + size
            if end > limit or start < previous:
                if head >= limit:
                    raise IndexError
                if size == INVALID_SIZE:
                    raise FormatError(f"row {len(starts)}: info byte {data[head]:#x} has the invalid word size 3", head)
                if end > limit:
                    raise FormatError(f"row {len(starts)}: data words end beyond the FRE sub-section's end", position)
                raise FormatError(f"row {len(starts)} starts at {start:#x}, before its predecessor", position)
            rows.append(interpret[data[head:end]])
            starts.append(start)
            position, previous = end, start
    except FormatError as error:
        raise error.at(position) from None
    except IndexError:
        what = "starts beyond the FRE sub-section's end" if head >= limit else "lies beyond the section's end"
        raise FormatError(f"row {len(starts)} of {count} {what}", position) from None
    return starts, rows


def _from_little(raw: bytes) -> int:
    return int.from_bytes(raw, "little")


def _from_big(raw: bytes) -> int:
    return int.from_bytes(raw, "big")
