"""Address ranges: ``.debug_ranges`` (DWARF 4, 2.17.3), ``.debug_rnglists`` (DWARF 5, 7.25), ``.debug_aranges``."""

from __future__ import annotations

import struct
from typing import Callable

from sframe_unwind.cfi.leb128 import read_uleb128
from sframe_unwind.errors import FormatError
from sframe_unwind.memory import STRUCT_MARKS
from sframe_unwind.source import forms
from sframe_unwind.source.forms import Encoding, Value
from sframe_unwind.source.sections import ByteOrder, DebugSections

_RANGES, _RNGLISTS, _ARANGES = ".debug_ranges", ".debug_rnglists", ".debug_aranges"
_LARGEST = (1 << 64) - 1
_CHUNK = 1 << 12
_MAX_ARANGES = 1 << 26
"""Bytes; what is behind is not read."""

Range = tuple[int, int]
FindAddress = Callable[[int], int]
"""``(index)``: returns an address of ``.debug_addr``."""


def read_ranges(
    sections: DebugSections, encoding: Encoding, value: Value, base: int, lists: int | None, find: FindAddress
) -> list[Range]:
    """Return the ranges of a list, empty ones included.

    :param value: of ``DW_AT_ranges``: an offset or an index.
    :param base: what addresses are relative to.
    :param lists: where the offsets of lists are that have an index; ``None``: not known.
    :raises FormatError: the list is malformed.
    """
    offset = value.number
    if encoding.version < 5:
        return _old(sections, offset, base, encoding.byteorder)
    if value.kind == forms.INDEX:
        size = encoding.offset_size
        data = sections.read(_RNGLISTS, (lists or 0) + offset * size, size)
        offset = (lists or 0) + int.from_bytes(data, encoding.byteorder)
    return _new(_rest(sections, _RNGLISTS, offset), base, encoding, find)


def _rest(sections: DebugSections, name: str, offset: int) -> bytes:
    """Return what is behind an offset of a section, up to more than the ranges of any function."""
    return sections.read(name, offset, min(max(sections.size(name) - offset, 0), _CHUNK * 64))


def _old(sections: DebugSections, offset: int, base: int, byteorder: ByteOrder) -> list[Range]:
    found: list[Range] = []
    data = _rest(sections, _RANGES, offset)
    for start, end in struct.iter_unpack(STRUCT_MARKS[byteorder] + "QQ", data[: len(data) // 16 * 16]):
        if not start and not end:
            break
        if start == _LARGEST:
            base = end
        elif start <= end:
            found.append((base + start, base + end))
    return found


def _new(data: bytes, base: int, encoding: Encoding, find: FindAddress) -> list[Range]:
    found: list[Range] = []
    at = 0

    def address() -> int:
        nonlocal at
        at += encoding.address_size
        return int.from_bytes(data[at - encoding.address_size : at], encoding.byteorder)

    def number() -> int:
        nonlocal at
        result, at = read_uleb128(data, at)
        return result

    while at < len(data) and (kind := data[at]):
        at += 1
        if kind == 1:  # DW_RLE_base_addressx
            base = find(number())
            continue
        if kind == 5:  # DW_RLE_base_address
            base = address()
            continue
        if kind == 2:  # DW_RLE_startx_endx
            start, end = find(number()), find(number())
        elif kind == 3:  # DW_RLE_startx_length
            start = find(number())
            end = start + number()
        elif kind == 4:  # DW_RLE_offset_pair
            start, end = base + number(), base + number()
        elif kind == 6:  # DW_RLE_start_end
            start, end = address(), address()
        elif kind == 7:  # DW_RLE_start_length
            start = address()
            end = start + number()
        else:
            raise FormatError(f"range of kind {kind} is not known", section=_RNGLISTS)
        if start <= end:
            found.append((start, end))
    return found


def read_aranges(sections: DebugSections) -> list[tuple[int, int, int]]:
    """Return the ranges of ``.debug_aranges``: start, end (exclusive), offset of the unit; up to what is malformed."""
    found: list[tuple[int, int, int]] = []
    mark = STRUCT_MARKS[sections.byteorder]
    data = sections.read(_ARANGES, 0, min(sections.size(_ARANGES), _MAX_ARANGES))
    at = 0
    while at + 12 <= len(data):
        (length,), head, word = struct.unpack_from(mark + "I", data, at), 4, "I"
        if length == 0xFFFFFFFF and at + 24 <= len(data):
            (length,), head, word = struct.unpack_from(mark + "Q", data, at + 4), 12, "Q"
        end = at + head + length
        layout = struct.Struct(mark + "H" + word + "BB")
        if end > len(data) or head + layout.size > head + length:
            break
        _, unit, address_size, segment_size = layout.unpack_from(data, at + head)
        if address_size != 8 or segment_size:
            break
        first = at + (head + layout.size + 15) // 16 * 16  # tuples are aligned to their size
        pairs = data[first : end - (end - first) % 16] if end > first else b""
        found += ((start, start + size, unit) for start, size in struct.iter_unpack(mark + "QQ", pairs) if size)
        at = end
    return found
