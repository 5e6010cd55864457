"""How the values of attributes are encoded (DWARF 5, 7.5.5 and 7.5.6; GNU's extensions for split and shared files)."""

from __future__ import annotations

from typing import NamedTuple

from sframe_unwind.cfi.leb128 import read_sleb128, read_uleb128
from sframe_unwind.errors import FormatError
from sframe_unwind.source.sections import ByteOrder

ADDRESS, CONSTANT, REFERENCE, STRING, OFFSET, INDEX = "address", "constant", "reference", "string", "offset", "index"
"""What a value is: an address; a number; the offset of an entry in ``.debug_info``; a string, as section and offset; an
offset in another section; the index of an address or of a list of ranges."""


class Value(NamedTuple):
    """The value of an attribute."""

    kind: str
    number: int
    section: str = ""
    """For a string, the section that :attr:`number` counts in; ``.debug_str_offsets``: the number is an index."""


class Encoding(NamedTuple):
    """What the encodings of a unit depend on."""

    byteorder: ByteOrder
    version: int
    address_size: int
    """In bytes."""
    offset_size: int
    """In bytes: 4, or 8 in the 64-bit format."""


_ADDR, _STRING, _INDIRECT, _IMPLICIT, _FLAG_PRESENT, _REF_ADDR, _DATA16 = 0x01, 0x08, 0x16, 0x21, 0x19, 0x10, 0x1E
_BLOCKS = {0x0A: 1, 0x03: 2, 0x04: 4}
_FIXED = {0x0B: 1, 0x05: 2, 0x06: 4, 0x07: 8, 0x0C: 1, _DATA16: 16, 0x20: 8, 0x1C: 4, 0x24: 8}
"""Data, flags, signatures, and references to a supplementary file: sizes in bytes."""
_REFERENCES = {0x11: 1, 0x12: 2, 0x13: 4, 0x14: 8}
_INDEXES = {0x29: 1, 0x2A: 2, 0x2B: 3, 0x2C: 4}
_STRING_INDEXES = {0x25: 1, 0x26: 2, 0x27: 3, 0x28: 4}
_OFFSETS = {0x0E: ".debug_str", 0x1F: ".debug_line_str", 0x17: "", 0x1D: "", 0x1F20: "", 0x1F21: ""}
"""Forms of the size of an offset, and the section of those that are strings."""
_ULEB_BLOCKS = (0x09, 0x18)
_ULEBS = (0x0F, 0x15, 0x1A, 0x1B, 0x22, 0x23, 0x1F01, 0x1F02)
_SDATA, _REF_UDATA = 0x0D, 0x15
_STRX, _ADDRX, _RNGLISTX = (0x1A, 0x1F02), (0x1B, 0x1F01), 0x23
_ELSEWHERE = (0x1C, 0x24, 0x1D, 0x1F20, 0x1F21, 0x20)
"""In a supplementary file, or by signature: not followed."""


def size_of(form: int, encoding: Encoding) -> int | None:
    """Return the size of a form in bytes; ``None``: it depends on the value."""
    if form == _ADDR:
        return encoding.address_size
    if form in (_FLAG_PRESENT, _IMPLICIT):
        return 0
    if form == _REF_ADDR:
        return encoding.address_size if encoding.version == 2 else encoding.offset_size
    if form in _OFFSETS:
        return encoding.offset_size
    return _FIXED.get(form) or _REFERENCES.get(form) or _INDEXES.get(form) or _STRING_INDEXES.get(form)


def skip(form: int, encoding: Encoding, data: bytes, at: int) -> int:
    """Return the offset behind a value.

    :raises FormatError: the form is not known, or the data ends.
    """
    size = size_of(form, encoding)
    if size is not None:
        return at + size
    if form in _ULEBS or form == _SDATA:
        while data[at] & 0x80:  # an IndexError is translated by the caller
            at += 1
        return at + 1
    if form == _STRING:
        end = data.find(b"\0", at)
        if end < 0:
            raise FormatError("a string does not end")
        return end + 1
    if form in _BLOCKS:
        width = _BLOCKS[form]
        return at + width + int.from_bytes(data[at : at + width], encoding.byteorder)
    if form in _ULEB_BLOCKS:
        length, at = read_uleb128(data, at)
        return at + length
    if form == _INDIRECT:
        form, at = read_uleb128(data, at)
        if form != _INDIRECT:
            return skip(form, encoding, data, at)
    raise FormatError(f"form {form:#x} is not known")


def value(form: int, implicit: int, encoding: Encoding, data: bytes, at: int, unit: int) -> Value | None:
    """Return a value; ``None``: it is of no kind that is used here.

    :param implicit: the value of a constant that stands in the abbreviation.
    :param unit: offset of the unit in ``.debug_info``, and of ``data``, which begins there.
    :raises FormatError: the data ends.
    """
    if form == _IMPLICIT:
        return Value(CONSTANT, implicit)
    if form == _INDIRECT:
        form, at = read_uleb128(data, at)
        return None if form in (_INDIRECT, _IMPLICIT) else value(form, 0, encoding, data, at, unit)
    if form == _STRING:
        return Value(STRING, unit + at, ".debug_info")
    if form in _ELSEWHERE or form in _BLOCKS or form in _ULEB_BLOCKS or form in (_DATA16, _FLAG_PRESENT):
        return None
    number = _number(form, encoding, data, at)
    if form == _ADDR:
        return Value(ADDRESS, number)
    if form in _REFERENCES or form == _REF_UDATA:
        return Value(REFERENCE, unit + number)
    if form == _REF_ADDR:
        return Value(REFERENCE, number)
    if form in _STRX or form in _STRING_INDEXES:
        return Value(STRING, number, ".debug_str_offsets")
    if form in _ADDRX or form in _INDEXES or form == _RNGLISTX:
        return Value(INDEX, number)
    if form in _OFFSETS:
        return Value(STRING, number, _OFFSETS[form]) if _OFFSETS[form] else Value(OFFSET, number)
    return Value(CONSTANT, number)


def _number(form: int, encoding: Encoding, data: bytes, at: int) -> int:
    if form == _SDATA:
        return read_sleb128(data, at)[0]
    if form in _ULEBS:
        return read_uleb128(data, at)[0]
    size = size_of(form, encoding)
    if size is None or at + size > len(data):
        raise FormatError("the data ends within a value")
    return int.from_bytes(data[at : at + size], encoding.byteorder)
