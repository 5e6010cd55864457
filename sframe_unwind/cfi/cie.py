"""Decodes common information entries (CIEs), which have the data that several FDEs share.

``.eh_frame``: Linux Standard Base Core 5.0, 10.6.1.1.  ``.debug_frame``: DWARF 5, 6.4.1, and DWARF 2 for version 1.
"""

from __future__ import annotations

from sframe_unwind.address import ByteOrder
from sframe_unwind.cfi.constants import ADDRESS_SIZE, PE_ABSPTR, PE_OMIT
from sframe_unwind.cfi.leb128 import read_sleb128, read_uleb128
from sframe_unwind.cfi.pointers import read_number
from sframe_unwind.errors import FormatError, UnsupportedError, counted
from sframe_unwind.named_tuple import NamedTuple

_VERSIONS = (1, 3, 4)
_SIZED = 4
"""The first version that contains the size of an address."""


class Cie(NamedTuple):
    """One CIE."""

    code_factor: int
    data_factor: int
    return_column: int
    """DWARF number of the return address column."""
    encoding: int
    """Encoding of the addresses in its FDEs."""
    augmented: bool
    """Its FDEs have augmentation data, which begins with its length."""
    signal: bool
    """Its FDEs describe signal trampolines."""
    pauth_key_b: bool
    """Return addresses are signed with key B (AArch64)."""
    instructions: bytes
    """The instructions that make the initial row of its FDEs."""


def decode(body: bytes, offset: int, byteorder: ByteOrder) -> Cie:
    """Decode a CIE.

    :param body: the record, from the CIE id on.
    :param offset: offset of the version in it, which is after the CIE id.
    :raises UnsupportedError: it is of an unknown version or augmentation.
    :raises FormatError: it is truncated.
    """
    try:
        version = body[offset]
        if version not in _VERSIONS:
            raise UnsupportedError(f"CIE version {version}, expected one of {', '.join(map(str, _VERSIONS))}")
        end = body.index(b"\0", offset + 1)
        augmentation = body[offset + 1 : end].decode("latin-1")
        offset = end + 1
        if version >= _SIZED:
            if (body[offset], body[offset + 1]) != (ADDRESS_SIZE, 0):
                raise UnsupportedError(
                    f"CIE with addresses of {counted(body[offset], 'byte')} and segments of {body[offset + 1]},"
                    " expected 8 and 0"
                )
            offset += 2
        if augmentation == "eh":
            offset += ADDRESS_SIZE  # a pointer of GCC 2, of no use here
        code_factor, offset = read_uleb128(body, offset)
        data_factor, offset = read_sleb128(body, offset)
        if version == 1:
            column, offset = body[offset], offset + 1
        else:
            column, offset = read_uleb128(body, offset)
        augmented = augmentation.startswith("z")
        if not augmented and augmentation not in ("", "eh"):
            raise UnsupportedError(f"CIE with the unknown augmentation {augmentation!r}")
        encoding = PE_ABSPTR
        if augmented:
            size, offset = read_uleb128(body, offset)
            if size > len(body) - offset:
                raise FormatError(
                    f"CIE with {counted(size, 'byte')} of augmentation data, but {len(body) - offset} left"
                )
            encoding = _encoding(augmentation, body[offset : offset + size], byteorder)
            offset += size
    except (IndexError, ValueError):
        raise FormatError("CIE is cut short") from None
    letters = augmentation if augmented else ""
    return Cie(
        code_factor=code_factor,
        data_factor=data_factor,
        return_column=column,
        encoding=encoding,
        augmented=augmented,
        signal="S" in letters,
        pauth_key_b="B" in letters,
        instructions=body[offset:],
    )


def _encoding(augmentation: str, data: bytes, byteorder: ByteOrder) -> int:
    """Return the encoding of the FDEs' addresses, from the data that belongs to the letters of an augmentation.

    :raises UnsupportedError: a letter is unknown.
    """
    encoding, offset = PE_ABSPTR, 0
    for letter in augmentation[1:]:
        if letter == "R":
            encoding, offset = data[offset], offset + 1
        elif letter == "L":
            offset += 1
        elif letter == "P":
            personality, offset = data[offset], offset + 1
            if personality != PE_OMIT:
                _, offset = read_number(data, offset, personality, byteorder)
        elif letter not in "SBG":
            raise UnsupportedError(f"CIE with the unknown augmentation {augmentation!r}")
    if offset > len(data):
        raise FormatError(f"CIE with {counted(len(data), 'byte')} of augmentation data, too few for {augmentation!r}")
    return encoding
