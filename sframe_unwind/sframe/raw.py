"""Reads FDEs and FREs as they are stored (V2 errata 1, 2.3 and 2.4; version 3); only their extents are checked.

:mod:`~sframe_unwind.sframe.fde` and :mod:`~sframe_unwind.sframe.fre` decode the fields and reject invalid values.
``lint`` reads invalid entries and rows with this module.
"""

from __future__ import annotations

import struct
from enum import Enum
from typing import Callable, Protocol, TypeVar

from sframe_unwind.address import ByteOrder
from sframe_unwind.errors import FormatError
from sframe_unwind.memory import STRUCT_MARKS, Data, take
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.sframe.constants import FEATURES, PLT_ENTRY_SIZE_V1, PcType
from sframe_unwind.sframe.header import FDE_LAYOUTS, FDE_SIZES, Header

_START = {
    (version, order): struct.Struct(mark + layout[:2])
    for version, layout in FDE_LAYOUTS.items()
    for order, mark in STRUCT_MARKS.items()
}
"""The first two fields of an entry, start and size, by version and byte order."""

ATTRIBUTES = "HBBB"
"""The fields of the attribute record of version 3: number of rows, info, info2 and repetition size.

The record directly precedes the first FRE of the function."""
ATTRIBUTE_SIZE = struct.calcsize("=" + ATTRIBUTES)
"""Size of the attribute record in bytes."""

ADDRESS_SIZES = (1, 2, 4)
"""Size of the start address of a row in bytes, by FRE type (V2 errata 1, 2.3.3)."""

FRE_TYPE, PC_TYPE, PAUTH_KEY, SIGNAL = 0xF, 0x10, 0x20, 0x80
"""Masks of the bits of info (V2 errata 1, 2.3.1).  Only version 3 has the last one, for signal trampolines."""
FDE_TYPE = 0x1F
"""Mask of the bits of info2 (version 3)."""

WORD_SIZES = (1, 2, 4)
"""Size of a data word in bytes, by bits 5 and 6 of the info byte; the value 3 is invalid (V2 errata 1, 2.4.1)."""
# Larger than any section, so the check of the end of a row also rejects the invalid size.
INVALID_SIZE = 1 << 62
WORDS_SIZE = tuple(
    (info >> 1 & 0xF) * WORD_SIZES[info >> 5 & 3] if info >> 5 & 3 < 3 else INVALID_SIZE for info in range(256)
)
"""Size of all data words of a row in bytes, by its info byte."""

Interpreted = TypeVar("Interpreted", covariant=True)


class RowInterpreter(Protocol[Interpreted]):
    """Converts the bytes of a row, without its start address, to the form that the caller needs.

    The interpreter is a mapping and not a function because a program repeats a few dozen distinct rows: a ``dict`` that
    computes missing values converts each distinct row once, and then only looks it up.
    """

    def __getitem__(self, row: bytes, /) -> Interpreted: ...


class Verbatim:
    """An interpreter that leaves the bytes of a row unchanged."""

    def __getitem__(self, row: bytes, /) -> bytes:
        return row


VERBATIM = Verbatim()


class RawFde(NamedTuple):
    """The fields of an entry and of its attribute record, as stored."""

    start_field: int
    size: int
    rows_offset: int
    """Offset of the first FRE, in bytes from the start of the FRE sub-section."""
    num_rows: int
    info: int
    info2: int
    """0 before version 3."""
    repetition_size: int
    """In version 1, which does not store it: :data:`PLT_ENTRY_SIZE_V1` in a mask FDE, else 0."""
    info_offset: int
    """Section offset of :attr:`info`, in bytes.  In version 3, info2 and the repetition size follow it, and the
    number of rows precedes it."""

    @property
    def fre_type(self) -> int:
        """The FRE type: 0 to 2; other values are not defined."""
        return self.info & FRE_TYPE

    @property
    def pc_type(self) -> PcType:
        """How rows are matched against a pc."""
        return PcType.MASK if self.info & PC_TYPE else PcType.INC

    @property
    def fde_type(self) -> int:
        """The FDE type: 0 is default, 1 is flexible; other values are not defined."""
        return self.info2 & FDE_TYPE

    @property
    def is_signal(self) -> bool:
        """Whether the bit is set that marks a signal trampoline in version 3."""
        return bool(self.info & SIGNAL)


class RawFdes:
    """Reads the entries under one header.

    :param data: the whole section.
    :param base: section offset of the header, in bytes.
    """

    def __init__(self, data: Data, base: int, header: Header) -> None:
        version, mark = header.version, STRUCT_MARKS[header.byteorder]
        self.first = base + header.fdes_start
        """Section offset of the first entry, in bytes."""
        self.entry_size = FDE_SIZES[version]
        """Size of an entry in bytes."""
        self.start = _START[version, header.byteorder]
        """Reads the start (signed) and the size (unsigned) of an entry, the only fields that a search needs."""
        self._data = data
        features, entry = FEATURES[version], struct.Struct(mark + FDE_LAYOUTS[version])
        self._unpack, self._read_size = entry.unpack, entry.size
        self._unpack_attributes = struct.Struct(mark + ATTRIBUTES).unpack if features.attributes else None
        self._absent = () if features.repetition_size else (0,)
        """The repetition size, if the version does not store it."""
        self._fres = base + header.fres_start
        self._fres_end = base + header.fres_end

    def read(self, index: int) -> RawFde:
        """Read an entry.

        :param index: number of the entry under the header, from 0.
        :raises FormatError: the entry or its attribute record is out of bounds.
        """
        return RawFde(*self.fields(index))

    def fields(self, index: int) -> tuple[int, int, int, int, int, int, int, int]:
        """Read the fields of a :class:`RawFde` as a plain tuple, which takes half the time of :meth:`read`.

        :raises FormatError: as :meth:`read`.
        """
        offset = self.first + index * self.entry_size
        entry = self._data[offset : offset + self._read_size]
        if len(entry) != self._read_size:
            entry = take(self._data, offset, self._read_size, f"FDE {index}")
        if self._unpack_attributes is None:
            start, size, rows_offset, num_rows, info, repetition = self._unpack(entry) + self._absent
            if self._absent and info & PC_TYPE:
                repetition = PLT_ENTRY_SIZE_V1
            return start, size, rows_offset, num_rows, info, 0, repetition, offset + 16
        start, size, rows_offset = self._unpack(entry)
        record = self._fres + rows_offset
        first = record + ATTRIBUTE_SIZE
        if first > self._fres_end:
            raise FormatError(
                f"FDE {index}: attribute record at {rows_offset:#x} is outside the FRE sub-section"
                f" of {self._fres_end - self._fres:#x} bytes",
                offset + 12,
            )
        attributes = self._data[record:first]
        if len(attributes) != ATTRIBUTE_SIZE:
            attributes = take(self._data, record, ATTRIBUTE_SIZE, f"FDE {index}: attribute record")
        num_rows, info, info2, repetition = self._unpack_attributes(attributes)
        return start, size, rows_offset + ATTRIBUTE_SIZE, num_rows, info, info2, repetition, record + 2


class StopReason(Enum):
    """Why a row, and therefore all rows after it, cannot be read."""

    STARTS_OUTSIDE = "it starts after the limit"
    ENDS_OUTSIDE = "its data words end after the limit"
    WORD_SIZE = "its data words have the invalid size"
    NO_DATA = "the section ends before the limit"
    MEANING = "the interpreter rejects it"


class Stop(NamedTuple):
    """The row at which reading stopped."""

    reason: StopReason
    offset: int
    """Section offset of the row, in bytes."""
    info_offset: int
    """Section offset of its info byte, in bytes."""
    error: FormatError | None = None
    """The error that the interpreter raised; only for :attr:`StopReason.MEANING`."""


def read_rows(
    data: Data,
    offset: int,
    limit: int,
    count: int,
    layout: tuple[int, ByteOrder],
    interpret: RowInterpreter[Interpreted],
) -> tuple[list[int], list[Interpreted], Stop | None]:
    """Read the rows of one function in the order in which they are stored, whether or not their start addresses rise.

    :param data: the whole section.
    :param offset: section offset of the first row, in bytes.
    :param limit: section offset of the end of the FRE sub-section, in bytes.
    :param count: number of rows.
    :param layout: size of the start address of a row in bytes, and byte order.
    :returns: the start addresses (in bytes from the start of the function), the interpreted rows, and the row at which
        reading stopped, or ``None``.  There is one more start address if the interpreter rejected a row.
    """
    starts: list[int] = []
    rows: list[Interpreted] = []
    address_size, byteorder = layout
    order: Callable[[bytes], int] = _from_little if byteorder == "little" else _from_big
    position = head = offset
    try:
        for _ in range(count):
            head = position + address_size
            start = data[position] if address_size == 1 else order(data[position:head])
            end = head + 1 + WORDS_SIZE[data[head]]
            if end > limit:
                return starts, rows, Stop(_why_outside(data[head], head, limit), position, head)
            starts.append(start)
            rows.append(interpret[data[head:end]])
            position = end
    except FormatError as error:
        return starts, rows, Stop(StopReason.MEANING, position, head, error)
    except IndexError:
        reason = StopReason.STARTS_OUTSIDE if head >= limit else StopReason.NO_DATA
        return starts, rows, Stop(reason, position, head)
    return starts, rows, None


def _why_outside(info: int, head: int, limit: int) -> StopReason:
    if head >= limit:
        return StopReason.STARTS_OUTSIDE
    return StopReason.WORD_SIZE if WORDS_SIZE[info] == INVALID_SIZE else StopReason.ENDS_OUTSIDE


def _from_little(raw: bytes) -> int:
    return int.from_bytes(raw, "little")


def _from_big(raw: bytes) -> int:
    return int.from_bytes(raw, "big")
