"""The SFrame header and its preamble, specification 2.1 and 2.2: 28 bytes, the same in all versions."""

from __future__ import annotations

import struct
from typing import NamedTuple

from sframe_unwind.errors import FormatError, UnsupportedError
from sframe_unwind.memory import STRUCT_MARKS, Data, take
from sframe_unwind.sframe.constants import ARCH_BY_ABI, KNOWN_FLAGS, MAGIC, VERSIONS, AbiNumber, Flag

SIZE = 28
"""Length in bytes, without the auxiliary header."""

ABI_OFFSET = 4
"""Of the ABI number, in bytes from the header's start."""

_LAYOUT = "HBBBbbBIIIII"
_STRUCTS = {order: struct.Struct(mark + _LAYOUT) for order, mark in STRUCT_MARKS.items()}

MAGIC_BYTES = (MAGIC.to_bytes(2, "little"), MAGIC.to_bytes(2, "big"))
"""How a header begins, in either byte order."""

_ABI_NUMBERS = frozenset(AbiNumber)

FDE_SIZES = {1: 17, 2: 20, 3: 16}
"""Length in bytes of a function descriptor entry, by version."""


class Header(NamedTuple):
    """One header.  Offsets are in bytes, from the start of this header unless said otherwise."""

    byteorder: str
    """``"little"`` or ``"big"``, told by the magic number."""
    version: int
    flags: Flag
    abi: AbiNumber
    fixed_fp_offset: int
    """FP is always at CFA plus this; 0: no such place."""
    fixed_ra_offset: int
    """RA is always at CFA plus this; 0: no such place."""
    aux_size: int
    """Length in bytes of the auxiliary header."""
    num_fdes: int
    num_fres: int
    fre_size: int
    """Length in bytes of the FRE sub-section."""
    fde_offset: int
    """Of the FDE sub-section, from the end of the header, auxiliary header included (as on disk)."""
    fre_offset: int
    """Of the FRE sub-section, likewise."""

    @property
    def fdes_start(self) -> int:
        """Offset of the FDE sub-section."""
        return SIZE + self.aux_size + self.fde_offset

    @property
    def fdes_end(self) -> int:
        """Offset of the end of the FDE sub-section."""
        return self.fdes_start + self.num_fdes * FDE_SIZES[self.version]

    @property
    def fres_start(self) -> int:
        """Offset of the FRE sub-section."""
        return SIZE + self.aux_size + self.fre_offset

    @property
    def fres_end(self) -> int:
        """Offset of the end of the FRE sub-section."""
        return self.fres_start + self.fre_size

    @property
    def total_size(self) -> int:
        """Length in bytes of all that this header describes, itself included."""
        return max(SIZE + self.aux_size, self.fdes_end, self.fres_end)


def starts_are_pcrel(version: int, flags: Flag) -> bool:
    """Return whether a start field counts from itself; otherwise it counts from the section's start.

    Errata 1 of version 2 has a flag for it.  Before, GNU ld wrote starts that count from the section, and always
    sorted; an unsorted table without the flag is what the assembler wrote, whose relocations make starts count from
    themselves, put there by a linker that does not know SFrame.
    """
    if flags & Flag.FDE_FUNC_START_PCREL:
        return True
    return version < 3 and not flags & Flag.FDE_SORTED


def decode(data: Data, offset: int = 0) -> Header:
    """Decode the header at ``offset`` of a section.

    Only the header's own bytes are looked at; whether the tables fit is :func:`check_extent`'s matter, because
    in the memory of a process the length of the data is known only from here.

    :raises UnsupportedError: version, flag or ABI that is not known.
    :raises FormatError: too short, wrong magic number, or byte order and ABI at odds.
    """
    raw = take(data, offset, SIZE, "SFrame header")
    byteorder = _byteorder(raw, offset)
    fields = _STRUCTS[byteorder].unpack(raw)
    _, version, flags, abi = fields[:4]
    if version not in VERSIONS:
        raise UnsupportedError(f"unknown SFrame version {version}, expected 1, 2 or 3", offset + 2)
    unknown = flags & ~KNOWN_FLAGS[version]
    if unknown:
        raise UnsupportedError(f"unknown flag bits {unknown:#x} in flags {flags:#x} of version {version}", offset + 3)
    if abi not in _ABI_NUMBERS:
        raise UnsupportedError(f"unknown ABI {abi}, expected 1 to 4", offset + ABI_OFFSET)
    if ARCH_BY_ABI[AbiNumber(abi)].byteorder != byteorder:
        raise FormatError(f"ABI {abi} ({AbiNumber(abi).name}) in {byteorder}-endian data", offset + ABI_OFFSET)
    return Header(byteorder, version, Flag(flags), AbiNumber(abi), *fields[4:])


def _byteorder(raw: bytes, offset: int) -> str:
    for magic, byteorder in zip(MAGIC_BYTES, ("little", "big")):
        if raw.startswith(magic):
            return byteorder
    raise FormatError(f"no SFrame header: expected magic number {MAGIC:#x}, found bytes {raw[:2].hex()}", offset)


def check_extent(header: Header, size: int, offset: int = 0) -> None:
    """Check that the tables of the header at ``offset`` lie within a section of ``size`` bytes.

    :raises FormatError: they do not.
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
    """Encode the 28 bytes of a header; the auxiliary header is the caller's.

    :raises struct.error: a value does not fit its field.
    """
    return _STRUCTS[header.byteorder].pack(MAGIC, *header[1:])
