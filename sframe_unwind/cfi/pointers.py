"""Decodes pointers in ``.eh_frame`` and ``.eh_frame_hdr`` (Linux Standard Base Core 5.0, 10.5)."""

from __future__ import annotations

import struct

from sframe_unwind.address import ADDRESS_MASK, ByteOrder
from sframe_unwind.cfi.constants import (
    PE_ABSPTR,
    PE_APPLICATION,
    PE_DATAREL,
    PE_FORMAT,
    PE_INDIRECT,
    PE_OMIT,
    PE_PCREL,
    PE_SDATA2,
    PE_SDATA4,
    PE_SDATA8,
    PE_SIGNED,
    PE_SLEB128,
    PE_UDATA2,
    PE_UDATA4,
    PE_UDATA8,
    PE_ULEB128,
)
from sframe_unwind.cfi.leb128 import read_sleb128, read_uleb128
from sframe_unwind.errors import FormatError, UnsupportedError, counted
from sframe_unwind.memory import STRUCT_MARKS
from sframe_unwind.named_tuple import NamedTuple

_FIXED = {
    PE_ABSPTR: "Q",
    PE_UDATA2: "H",
    PE_UDATA4: "I",
    PE_UDATA8: "Q",
    PE_SIGNED: "q",
    PE_SDATA2: "h",
    PE_SDATA4: "i",
    PE_SDATA8: "q",
}


class Bases(NamedTuple):
    """The base addresses of relative pointers."""

    byteorder: ByteOrder
    """``"little"`` or ``"big"``."""
    data: int | None = None
    """Base address of ``DW_EH_PE_datarel``; ``None``: not known."""


def fixed_format(encoding: int) -> str | None:
    """Return :mod:`struct`'s format of a number in an encoding; ``None``: its length varies."""
    return _FIXED.get(encoding & PE_FORMAT)


def check_supported(encoding: int, bases: Bases) -> None:
    """Check that pointers in an encoding can be read.

    :raises UnsupportedError: they cannot.
    """
    if encoding == PE_OMIT:
        raise UnsupportedError("pointer encoding 0xff (DW_EH_PE_omit) where a pointer is needed")
    if encoding & PE_INDIRECT:
        raise UnsupportedError(f"pointer encoding {encoding:#x}: DW_EH_PE_indirect is not supported")
    application = encoding & PE_APPLICATION
    if application not in (PE_ABSPTR, PE_PCREL, PE_DATAREL):
        raise UnsupportedError(f"pointer encoding {encoding:#x}: relative to {application:#x} is not supported")
    if application == PE_DATAREL and bases.data is None:
        raise UnsupportedError(f"pointer encoding {encoding:#x}: DW_EH_PE_datarel without a known base address")
    if encoding & PE_FORMAT not in (*_FIXED, PE_ULEB128, PE_SLEB128):
        raise UnsupportedError(f"pointer encoding {encoding:#x}: the format {encoding & PE_FORMAT:#x} is not known")


def read_number(data: bytes, offset: int, encoding: int, byteorder: ByteOrder) -> tuple[int, int]:
    """Return the number in the format of an encoding, and the offset of the byte after it.

    :raises FormatError: the data ends before the number does.
    """
    layout = _FIXED.get(encoding & PE_FORMAT)
    if layout is None:
        return (read_uleb128 if encoding & PE_FORMAT == PE_ULEB128 else read_sleb128)(data, offset)
    number = struct.Struct(STRUCT_MARKS[byteorder] + layout)
    if offset + number.size > len(data):
        raise FormatError(f"the data ends within a pointer of {counted(number.size, 'byte')}")
    return number.unpack_from(data, offset)[0], offset + number.size


def read_pointer(data: bytes, offset: int, encoding: int, address: int, bases: Bases) -> tuple[int, int]:
    """Return an address, and the offset of the byte after the pointer.

    :param address: address of the pointer's first byte in memory.
    :raises UnsupportedError: the encoding is not supported.
    :raises FormatError: the data ends before the pointer does.
    """
    check_supported(encoding, bases)
    value, end = read_number(data, offset, encoding, bases.byteorder)
    return value + origin(encoding, address, bases) & ADDRESS_MASK, end


def origin(encoding: int, address: int, bases: Bases) -> int:
    """Return the address to which a pointer at an address is relative."""
    application = encoding & PE_APPLICATION
    if application == PE_PCREL:
        return address
    return bases.data or 0 if application == PE_DATAREL else 0
