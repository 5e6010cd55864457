"""Function descriptor entries (FDEs), V2 errata 1, 2.3, and version 3 (binutils 2.46)."""

from __future__ import annotations

import struct
from typing import NamedTuple

from sframe_unwind.errors import FormatError, UnsupportedError
from sframe_unwind.memory import STRUCT_MARKS, Data, take
from sframe_unwind.sframe.constants import PLT_ENTRY_SIZE_V1, FdeType, PauthKey, PcType
from sframe_unwind.sframe.header import FDE_SIZES, Header

_FIXED = {1: "iIIIB", 2: "iIIIBBH", 3: "qII"}
STRUCTS = {
    (version, order): struct.Struct(mark + layout)
    for version, layout in _FIXED.items()
    for order, mark in STRUCT_MARKS.items()
}
"""All fields of an entry, by version and byte order: start, size and the offset of the first FRE; in versions 1 and 2,
number of rows and info follow."""
START_STRUCTS = {
    (version, order): struct.Struct(mark + layout[:2])
    for version, layout in _FIXED.items()
    for order, mark in STRUCT_MARKS.items()
}
"""Start (signed) and size (unsigned) of an entry, by version and byte order.  A search needs no other field."""

ATTRIBUTE_SIZE = 5
"""Size of the attribute record of version 3 in bytes.  The record directly precedes the first FRE of the function."""
ATTRIBUTES = {"little": struct.Struct("<HBBB"), "big": struct.Struct(">HBBB")}
"""Number of rows, info, info2 and repetition size."""

ADDRESS_SIZES = (1, 2, 4)
"""Size of the start address of a row in bytes, by FRE type (V2 errata 1, 2.3.3)."""
FRE_TYPE, PC_TYPE, FDE_TYPE = 0xF, 0x10, 0x1F
"""Masks of the bits of info (the first two) and of info2 (V2 errata 1, 2.3.1; version 3)."""
_PC_TYPES, _FDE_TYPES, _KEYS = tuple(PcType), tuple(FdeType), tuple(PauthKey)
"""By value: looking one up takes a tenth of the time of calling the class."""


class Fde(NamedTuple):
    """One function descriptor entry.  Entries of versions 1 and 2 are converted to the fields of version 3."""

    start_field: int
    """The start field as stored, in bytes: relative to the field or to the section; see
    :func:`sframe_unwind.sframe.header.starts_are_pcrel`."""
    size: int
    """Length of the function in bytes."""
    rows_offset: int
    """Offset of the first FRE, in bytes from the start of the FRE sub-section."""
    num_rows: int
    address_size: int
    """Size of the start address of a row in bytes."""
    pc_type: PcType
    fde_type: FdeType
    pauth_key: PauthKey
    signal: bool
    """The function is a signal trampoline (version 3)."""
    repetition_size: int
    """Length of the repeated block of a mask FDE in bytes; 0 for other FDEs."""


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
    """0 in version 1."""
    info_offset: int
    """Section offset of :attr:`info`, in bytes.  In version 3, the other attributes follow it."""


def read(data: Data, base: int, header: Header, index: int) -> RawFde:
    """Read an entry, whatever its fields say.

    :param data: the whole section.
    :param base: section offset of the header, in bytes.
    :param index: number of the entry under the header, from 0.
    :raises FormatError: the entry or its attribute record is out of bounds.
    """
    return RawFde(*_read(data, base, header, index))


def _read(data: Data, base: int, header: Header, index: int) -> tuple[int, ...]:
    """Read the fields of a :class:`RawFde`, which takes half as long as making one."""
    version = header.version
    offset = base + header.fdes_start + index * FDE_SIZES[version]
    layout = STRUCTS[version, header.byteorder]
    entry = data[offset : offset + layout.size]
    fields = layout.unpack(entry if len(entry) == layout.size else take(data, offset, layout.size, f"FDE {index}"))
    if version < 3:
        start, size, rows_offset, num_rows, info = fields[:5]
        return start, size, rows_offset, num_rows, info, 0, fields[5] if version == 2 else 0, offset + 16
    start, size, rows_offset = fields
    record = base + header.fres_start + rows_offset
    if rows_offset + ATTRIBUTE_SIZE > header.fre_size:
        raise FormatError(
            f"FDE {index}: attribute record at {rows_offset:#x} is outside the FRE sub-section"
            f" of {header.fre_size:#x} bytes",
            offset + 12,
        )
    attributes = data[record : record + ATTRIBUTE_SIZE]
    if len(attributes) != ATTRIBUTE_SIZE:
        attributes = take(data, record, ATTRIBUTE_SIZE, f"FDE {index}: attribute record")
    num_rows, info, info2, repetition = ATTRIBUTES[header.byteorder].unpack(attributes)
    return start, size, rows_offset + ATTRIBUTE_SIZE, num_rows, info, info2, repetition, record + 2


def decode(data: Data, base: int, header: Header, index: int) -> Fde:
    """Decode an entry.

    :param data: the whole section.
    :param base: section offset of the header, in bytes.
    :param index: number of the entry under the header, from 0.
    :raises FormatError: the entry or its attribute record is out of bounds, or a field has an invalid value.
    :raises UnsupportedError: the FRE type or FDE type is unknown.
    """
    start, size, rows_offset, num_rows, info, info2, repetition, info_at = _read(data, base, header, index)
    version = header.version
    if version < 3 and num_rows and rows_offset >= header.fre_size:
        raise FormatError(
            f"FDE {index}: first row at {rows_offset:#x} is outside the FRE sub-section of {header.fre_size:#x} bytes",
            info_at - 8,
        )
    fre_type = info & FRE_TYPE
    if fre_type >= len(ADDRESS_SIZES):
        raise UnsupportedError(f"FDE {index}: unknown FRE type {fre_type}, expected 0 to 2", info_at)
    fde_type = info2 & FDE_TYPE
    if fde_type >= len(_FDE_TYPES):
        raise UnsupportedError(f"FDE {index}: unknown FDE type {fde_type}, expected 0 or 1", info_at + 1)
    pc_type = _PC_TYPES[bool(info & PC_TYPE)]
    if pc_type is PcType.MASK and version == 1:
        repetition = PLT_ENTRY_SIZE_V1
    if pc_type is PcType.MASK and not repetition:
        offset = base + header.fdes_start + index * FDE_SIZES[version]
        raise FormatError(f"FDE {index}: repetition size 0 in a mask FDE", offset)
    return Fde(
        start,
        size,
        rows_offset,
        num_rows,
        ADDRESS_SIZES[fre_type],
        pc_type,
        _FDE_TYPES[fde_type],
        _KEYS[info >> 5 & 1],
        version == 3 and bool(info & 0x80),
        repetition,
    )
