"""The SFrame header with its preamble, V2 errata 1, 2.1 and 2.2, and the layouts that depend on its version."""

from __future__ import annotations

import struct

from sframe_unwind.address import BYTE_ORDERS, ByteOrder
from sframe_unwind.errors import FormatError, UnsupportedError
from sframe_unwind.memory import STRUCT_MARKS, Data, take
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.sframe.constants import (
    ARCH_BY_ABI,
    EXPECTED_VERSIONS,
    FEATURES,
    KNOWN_FLAGS,
    MAGIC,
    NEWEST,
    VERSIONS,
    AbiNumber,
    Flag,
)

ABI_OFFSET = 4
"""Offset of the ABI number from the start of the header, in bytes."""

_LAYOUTS = dict.fromkeys(VERSIONS, "HBBBbbBIIIII")
"""The fields of :class:`Header` by version, after the magic number.  So far, all versions have the same."""
_STRUCTS = {
    (version, order): struct.Struct(mark + layout)
    for version, layout in _LAYOUTS.items()
    for order, mark in STRUCT_MARKS.items()
}

SIZES = {version: struct.calcsize("=" + layout) for version, layout in _LAYOUTS.items()}
"""Size of the header in bytes, without the auxiliary header, by version."""

_VERSION_OFFSET = 2

MAGIC_BYTES: dict[bytes, ByteOrder] = {MAGIC.to_bytes(2, order): order for order in BYTE_ORDERS}
"""The first two bytes of a header, with the byte order that they show."""

_ABI_NUMBERS = frozenset(AbiNumber)

FDE_LAYOUTS = {1: "iIIIB", 2: "iIIIBBxx", 3: "qII"}
"""The fields of a function descriptor entry by version: start, size and the offset of the first FRE.

Without an attribute record, the number of rows and info follow, and then the repetition size if the version stores it.
"""

FDE_SIZES = {version: struct.calcsize("=" + layout) for version, layout in FDE_LAYOUTS.items()}
"""Size of a function descriptor entry in bytes, by version."""


class Header(NamedTuple):
    """One header.  The properties give offsets in bytes from the start of this header."""

    byteorder: ByteOrder
    """The byte order that the magic number shows."""
    version: int
    flags: Flag
    abi: AbiNumber
    fixed_fp_offset: int
    """FP is always saved at CFA plus this many bytes; 0: FP has no fixed location."""
    fixed_ra_offset: int
    """RA is always saved at CFA plus this many bytes; 0: RA has no fixed location."""
    aux_size: int
    """Size of the auxiliary header in bytes."""
    num_fdes: int
    num_fres: int
    fre_size: int
    """Size of the FRE sub-section in bytes."""
    fde_offset: int
    """Offset of the FDE sub-section in bytes, from the end of the header with its auxiliary header (as on disk)."""
    fre_offset: int
    """Offset of the FRE sub-section in bytes, counted like :attr:`fde_offset`."""

    @property
    def aux_start(self) -> int:
        """Offset of the auxiliary header: the size of the header without it."""
        return SIZES[self.version]

    @property
    def fdes_start(self) -> int:
        """Offset of the FDE sub-section."""
        return self.aux_start + self.aux_size + self.fde_offset

    @property
    def fdes_end(self) -> int:
        """Offset of the end of the FDE sub-section."""
        return self.fdes_start + self.num_fdes * FDE_SIZES[self.version]

    @property
    def fres_start(self) -> int:
        """Offset of the FRE sub-section."""
        return self.aux_start + self.aux_size + self.fre_offset

    @property
    def fres_end(self) -> int:
        """Offset of the end of the FRE sub-section."""
        return self.fres_start + self.fre_size

    @property
    def total_size(self) -> int:
        """Size of the header and its sub-sections in bytes."""
        return max(self.aux_start + self.aux_size, self.fdes_end, self.fres_end)


def starts_are_pcrel(version: int, flags: Flag) -> bool:
    """Return whether start fields are relative to the field itself; otherwise they are relative to the section start.

    V2 errata 1 and version 3 have a flag for this.  Before errata 1, GNU ld wrote sorted tables with starts relative
    to the section.  An unsorted table without the flag comes from the assembler: the relocations of its start fields
    are relative to the field, and a linker that does not know SFrame applied them.
    """
    if flags & Flag.FDE_FUNC_START_PCREL:
        return True
    return FEATURES[version].pcrel_optional and not flags & Flag.FDE_SORTED


def decode(data: Data, offset: int = 0) -> Header:
    """Decode the header at ``offset`` (bytes) of a section.

    This reads the bytes of the header only.  :func:`check_extent` checks the sub-sections separately, because in the
    memory of a process the size of the section is known only after its header is decoded.

    :raises UnsupportedError: the version, a flag or the ABI is unknown.
    :raises FormatError: the data is too short, the magic number is wrong, or the byte order does not match the ABI.
    """
    byteorder, fields = read(data, offset)
    version, flags, abi = fields[:3]
    if version not in VERSIONS:
        what = f"unknown SFrame version {version}, expected {EXPECTED_VERSIONS}"
        raise UnsupportedError(what, offset + _VERSION_OFFSET)
    unknown = flags & ~KNOWN_FLAGS[version]
    if unknown:
        raise UnsupportedError(f"unknown flag bits {unknown:#x} in flags {flags:#x} of version {version}", offset + 3)
    if abi not in _ABI_NUMBERS:
        raise UnsupportedError(f"unknown ABI {abi}, expected 1 to 4", offset + ABI_OFFSET)
    if ARCH_BY_ABI[AbiNumber(abi)].byteorder != byteorder:
        raise FormatError(f"ABI {abi} ({AbiNumber(abi).name}) in {byteorder}-endian data", offset + ABI_OFFSET)
    return Header(byteorder, version, Flag(flags), AbiNumber(abi), *fields[3:])


def read(data: Data, offset: int) -> tuple[ByteOrder, tuple[int, ...]]:
    """Return byte order and fields of a header, in the order of :class:`Header`; the values are not checked.

    A header of an unknown version is read like one of the newest.

    :raises FormatError: the data is too short, or the magic number is wrong.
    """
    start = data[offset : offset + SIZES[NEWEST]]
    version = start[_VERSION_OFFSET] if len(start) > _VERSION_OFFSET else NEWEST
    if version not in VERSIONS:
        version = NEWEST
    raw = take(data, offset, SIZES[version], "SFrame header")
    byteorder = _byteorder(raw, offset)
    return byteorder, _STRUCTS[version, byteorder].unpack(raw)[1:]


def _byteorder(raw: bytes, offset: int) -> ByteOrder:
    if raw[:2] not in MAGIC_BYTES:
        raise FormatError(f"no SFrame header: expected magic number {MAGIC:#x}, found bytes {raw[:2].hex()}", offset)
    return MAGIC_BYTES[raw[:2]]


def check_extent(header: Header, size: int, offset: int = 0) -> None:
    """Check that the sub-sections of the header at ``offset`` (bytes) lie within a section of ``size`` bytes.

    :raises FormatError: a sub-section ends after the end of the section.
    """
    room = size - offset
    for name, start, end, field in (
        ("FDE", header.fdes_start, header.fdes_end, 20),
        ("FRE", header.fres_start, header.fres_end, 24),
    ):
        if end > room:
            raise FormatError(
                f"{name} sub-section runs from {offset + start:#x} to {offset + end:#x},"
                f" beyond the section's end at {size:#x}",
                offset + field,
            )


def encode(header: Header) -> bytes:
    """Return the bytes of a header, without the auxiliary header.

    :raises struct.error: a value does not fit its field.
    """
    fields = header[1 : len(_LAYOUTS[header.version])]
    return _STRUCTS[header.version, header.byteorder].pack(MAGIC, *fields)
