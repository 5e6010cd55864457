"""Function descriptor entries (FDEs), V2 errata 1, 2.3, and version 3 (binutils 2.46)."""

from __future__ import annotations

from sframe_unwind.errors import FormatError, UnsupportedError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.sframe.constants import FEATURES, FdeType, PauthKey, PcType
from sframe_unwind.sframe.header import Header
from sframe_unwind.sframe.raw import ADDRESS_SIZES, FDE_TYPE, FRE_TYPE, PAUTH_KEY, PC_TYPE, SIGNAL, RawFdes

_PC_TYPES, _FDE_TYPES, _KEYS = tuple(PcType), tuple(FdeType), tuple(PauthKey)
"""The members by value: looking one up takes a tenth of the time of calling the class."""


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


def decode(raw: RawFdes, header: Header, index: int) -> Fde:
    """Decode an entry.

    :param raw: the entries under the header.
    :param index: number of the entry, from 0.
    :raises FormatError: the entry or its attribute record is out of bounds, or a field has an invalid value.
    :raises UnsupportedError: the FRE type or FDE type is unknown.
    """
    start, size, rows_offset, num_rows, info, info2, repetition, info_at = raw.fields(index)
    features = FEATURES[header.version]
    if not features.attributes and num_rows and rows_offset >= header.fre_size:
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
    if pc_type is PcType.MASK and not repetition:
        raise FormatError(f"FDE {index}: repetition size 0 in a mask FDE", raw.first + index * raw.entry_size)
    return tuple.__new__(  # a quarter of the time of calling the class with keywords
        Fde,
        (
            *(start, size, rows_offset, num_rows, ADDRESS_SIZES[fre_type], pc_type, _FDE_TYPES[fde_type]),
            *(_KEYS[bool(info & PAUTH_KEY)], features.signal and bool(info & SIGNAL), repetition),
        ),
    )
