"""Frame row entries (FREs), V2 errata 1, 2.4: start address, info byte, data words."""

from __future__ import annotations

import struct

from sframe_unwind.address import ByteOrder
from sframe_unwind.errors import FormatError
from sframe_unwind.memory import STRUCT_MARKS, Data
from sframe_unwind.sframe.raw import (
    WORD_SIZES,
    WORDS_SIZE,
    Interpreted,
    RowInterpreter,
    Stop,
    StopReason,
    read_rows,
)

MIN_ROW_SIZE = 2
"""Size in bytes of the shortest row: a start address of one byte and the info byte (V2 errata 1, 2.4)."""

MAX_SHARED_ROWS = 32
"""Number of rows that each function of a table may share with others, on average.  A limit of this project: if all
functions claimed the same long list of rows, reading them would take time that grows with the square of the section's
size."""

_SIGNED = "bhi"
_WORD_STRUCTS = {
    (order, info): struct.Struct(f"{mark}{info >> 1 & 0xF}{_SIGNED[info >> 5 & 3]}")
    for order, mark in STRUCT_MARKS.items()
    for info in range(0, 128, 2)
    if info >> 5 & 3 < 3
}


def most_rows(fre_size: int, num_fdes: int) -> int:
    """Return the maximum total number of rows of a table's functions, some of which they may share.

    :param fre_size: size of the FRE sub-section, in bytes.
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


def words(row: bytes, byteorder: ByteOrder) -> tuple[int, ...]:
    """Return the data words of a row, signed.

    :param row: the bytes of the row, starting with the info byte.
    """
    return _WORD_STRUCTS[byteorder, row[0] & 0x7E].unpack(row[1:])


def decode(
    data: Data,
    offset: int,
    limit: int,
    count: int,
    layout: tuple[int, ByteOrder],
    interpret: RowInterpreter[Interpreted],
) -> tuple[list[int], list[Interpreted]]:
    """Decode the rows of one function.

    :param data: the whole section.
    :param offset: section offset of the first row, in bytes.
    :param limit: section offset of the end of the FRE sub-section, in bytes.
    :param count: number of rows.
    :param layout: size of the start address of a row in bytes, and byte order.
    :returns: the start addresses (in bytes from the start of the function) and the interpreted rows.
    :raises FormatError: a row is malformed, ends after ``limit`` or is out of order.
    """
    starts, rows, stop = read_rows(
        data=data, offset=offset, limit=limit, count=count, layout=layout, interpret=interpret
    )
    if starts != sorted(starts):
        raise _out_of_order(starts, data, offset, layout[0])
    if stop is not None:
        raise _malformed(stop, len(rows), count, data)
    return starts, rows


def _out_of_order(starts: list[int], data: Data, offset: int, address_size: int) -> FormatError:
    """Return the error of the first row that starts before its predecessor."""
    number = next(number for number in range(1, len(starts)) if starts[number] < starts[number - 1])
    for _ in range(number):
        head = offset + address_size
        offset = head + 1 + WORDS_SIZE[data[head]]
    return FormatError(f"row {number} starts at {starts[number]:#x}, before its predecessor", offset)


def _malformed(stop: Stop, number: int, count: int, data: Data) -> FormatError:
    """Return the error of the row at which reading stopped.

    :param number: number of the row.
    """
    if stop.error is not None:
        return stop.error.at(stop.offset)
    if stop.reason is StopReason.WORD_SIZE:
        info = data[stop.info_offset]
        return FormatError(f"row {number}: info byte {info:#x} has the invalid word size 3", stop.info_offset)
    if stop.reason is StopReason.ENDS_OUTSIDE:
        return FormatError(f"row {number}: data words end beyond the FRE sub-section's end", stop.offset)
    starts_outside = stop.reason is StopReason.STARTS_OUTSIDE
    what = "starts beyond the FRE sub-section's end" if starts_outside else "lies beyond the section's end"
    return FormatError(f"row {number} of {count} {what}", stop.offset)
