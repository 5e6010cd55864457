"""Checks the names in the header of a line number program before pyelftools reads it.

From version 5 on the header says how many names there are and what each consists of.  Where that is nothing at all,
a few bytes can claim a number of names that pyelftools would count to for years.
"""

from __future__ import annotations

from typing import BinaryIO

from sframe_unwind.address import ByteOrder
from sframe_unwind.cfi.leb128 import read_uleb128
from sframe_unwind.errors import FormatError

_SECTION = ".debug_line"
_START, _LONGEST = 32, 1 << 24
"""Bytes of a header up to its lists of names, and of all of it."""
_STRING, _BLOCK, _UDATA = 0x08, 0x09, 0x0F
_OFFSETS = (0x0E, 0x1F, 0x17)
"""``DW_FORM_strp``, ``DW_FORM_line_strp``, ``DW_FORM_sec_offset``: of the size of an offset."""
_SIZES = {0x0B: 1, 0x05: 2, 0x06: 4, 0x07: 8, 0x1E: 16}
"""``DW_FORM_data1`` to ``DW_FORM_data16``."""


def check_names(stream: BinaryIO, offset: int, little_endian: bool) -> None:
    """Check the lists of directories and files (DWARF 5, 6.2.4.1).

    :param offset: of the program in the section, in bytes.
    :raises FormatError: a list has names of no size, or more of them than the section has bytes.
    """
    order: ByteOrder = "little" if little_endian else "big"
    stream.seek(offset)
    data = stream.read(_START)
    wide = data[:4] == b"\xff" * 4
    at, size = (12, 8) if wide else (4, 4)
    if int.from_bytes(data[at : at + 2], order) < 5:
        return  # here names end with an empty one
    length = int.from_bytes(data[at + 4 : at + 4 + size], order)
    data += stream.read(min(length, _LONGEST))
    at += 4 + size + 5  # version, sizes of addresses and segments, length of the header, five facts of the program
    try:
        at += data[at]  # opcode_base: the number of lengths of opcodes, and 1 for itself
        at = _behind_names(data, _behind_names(data, at, size), size)
    except IndexError as error:
        raise FormatError("the header of a line number program is not whole", offset, _SECTION) from error


def _behind_names(data: bytes, at: int, offset_size: int) -> int:
    """Return the offset behind one list."""
    forms = []
    count, at = data[at], at + 1
    for _ in range(count):
        _, at = read_uleb128(data, at)
        form, at = read_uleb128(data, at)
        forms.append(form)
    names, at = read_uleb128(data, at)
    if names and (not forms or names > len(data) - at):
        raise FormatError(f"{names:,} names in {len(data) - at:,} bytes", section=_SECTION)
    for _ in range(names):
        for form in forms:
            at = _behind(data, at, form, offset_size)
    return at


def _behind(data: bytes, at: int, form: int, offset_size: int) -> int:
    """Return the offset behind one value."""
    if form in _SIZES:
        return at + _SIZES[form]
    if form in _OFFSETS:
        return at + offset_size
    if form == _STRING:
        end = data.find(0, at)
        if end < 0:
            raise FormatError("a string does not end", section=_SECTION)
        return end + 1
    if form in (_UDATA, _BLOCK):
        length, at = read_uleb128(data, at)
        return at + (length if form == _BLOCK else 0)
    raise FormatError(f"a name of form {form:#x}", section=_SECTION)
