"""Function descriptor entries (FDEs), specification 2.3, normalised from the three versions."""

from __future__ import annotations

import struct
from typing import NamedTuple

from sframe_unwind.errors import FormatError, UnsupportedError
from sframe_unwind.memory import STRUCT_MARKS, Data, take
from sframe_unwind.sframe.constants import PLT_ENTRY_SIZE_V1, FdeType, PauthKey, PcType
from sframe_unwind.sframe.header import FDE_SIZES, Header

_FIXED = {1: "iIIIB", 2: "iIIIBBH", 3: "qII"}
_STRUCTS = {
    (version, order): struct.Struct(mark + layout)
    for version, layout in _FIXED.items()
    for order, mark in STRUCT_MARKS.items()
}
_START = {
    (version, order): struct.Struct(mark + layout[:2])
    for version, layout in _FIXED.items()
    for order, mark in STRUCT_MARKS.items()
}
START_STRUCTS = _START
"""Start (signed) and size (unsigned) of an entry, by version and byte order: all that a search needs."""

ATTRIBUTE_SIZE = 5
"""Length in bytes of version 3's attribute record, which lies directly before the function's first FRE."""
_ATTRIBUTES = {"little": struct.Struct("<HBBB"), "big": struct.Struct(">HBBB")}

ADDRESS_SIZES = (1, 2, 4)
"""Length in bytes of a row's start address, by FRE type (specification 2.3.3)."""


class Fde(NamedTuple):
    """One function, as in version 3 whichever version it came from."""

    start_field: int
    """The start field as it stands: relative to itself or to the section, by the header's flag."""
    size: int
    """Length of the function in bytes."""
    rows_offset: int
    """Of the first FRE, in bytes from the start of the FRE sub-section."""
    num_rows: int
    address_size: int
    """Length in bytes of its rows' start addresses."""
    pc_type: PcType
    fde_type: FdeType
    pauth_key: PauthKey
    signal: bool
    """The function is a signal trampoline (version 3)."""
    repetition_size: int
    """Length in bytes of the repeated block of a mask FDE; 0 where that does not apply."""


def decode(data: Data, base: int, header: Header, index: int) -> Fde:
    """Decode entry ``index`` of the header at section offset ``base``.

    :raises FormatError: the entry or its attribute record lies outside, or a field has no meaning.
    """
    version = header.version
    offset = base + header.fdes_start + index * FDE_SIZES[version]
    what = f"FDE {index}"
    fields = _STRUCTS[version, header.byteorder].unpack(take(data, offset, FDE_SIZES[version], what))
    if version == 3:
        start, size, rows_offset = fields
        record = base + header.fres_start + rows_offset
        if rows_offset + ATTRIBUTE_SIZE > header.fre_size:
            raise FormatError(
                f"{what}: attribute record at {rows_offset:#x} is outside the FRE sub-section"
                f" of {header.fre_size:#x} bytes",
                offset + 12,
            )
        num_rows, info, info2, repetition = _ATTRIBUTES[header.byteorder].unpack(
            take(data, record, ATTRIBUTE_SIZE, f"{what}: attribute record")
        )
        rows_offset += ATTRIBUTE_SIZE
        info_at = record + 2
    else:
        start, size, rows_offset, num_rows, info = fields[:5]
        info2 = 0
        repetition = fields[5] if version == 2 else 0
        info_at = offset + 16
        if num_rows and rows_offset >= header.fre_size:
            raise FormatError(
                f"{what}: first row at {rows_offset:#x} is outside the FRE sub-section of {header.fre_size:#x} bytes",
                offset + 8,
            )
    fre_type = info & 0xF
    if fre_type >= len(ADDRESS_SIZES):
        raise UnsupportedError(f"{what}: unknown FRE type {fre_type}, expected 0 to 2", info_at)
    if info2 & 0x1F > 1:
        raise UnsupportedError(f"{what}: unknown FDE type {info2 & 0x1F}, expected 0 or 1", info_at + 1)
    pc_type = PcType(info >> 4 & 1)
    if pc_type is PcType.MASK and version == 1:
        repetition = PLT_ENTRY_SIZE_V1
    if pc_type is PcType.MASK and not repetition:
        raise FormatError(f"{what}: repetition size 0 in a mask FDE", offset)
    return Fde(
        start,
        size,
        rows_offset,
        num_rows,
        ADDRESS_SIZES[fre_type],
        pc_type,
        FdeType(info2 & 0x1F),
        PauthKey(info >> 5 & 1),
        version == 3 and bool(info & 0x80),
        repetition,
    )
