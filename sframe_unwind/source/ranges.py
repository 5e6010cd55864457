"""Address ranges: ``.debug_ranges`` (DWARF 4, 2.17.3), ``.debug_rnglists`` (DWARF 5, 7.25), ``.debug_aranges``."""

from __future__ import annotations

import struct
from typing import Callable

from sframe_unwind.address import ADDRESS_MASK, WORD_SIZE, Range
from sframe_unwind.cfi.leb128 import read_uleb128
from sframe_unwind.errors import FormatError
from sframe_unwind.source.forms import Encoding
from sframe_unwind.source.sections import DebugSections

_RANGES, _RNGLISTS, _ARANGES = ".debug_ranges", ".debug_rnglists", ".debug_aranges"
_CHUNK, _MAX_LIST = 256, 1 << 20
"""Number of bytes of a list to read at first, and of the longest list: of a unit with a section for each function."""
_MAX_ARANGES = 1 << 26
"""Maximum number of bytes that are read."""

FindAddress = Callable[[int], int]
"""``(index)``: returns an address of ``.debug_addr``."""


class RangeLists:
    """The lists of ranges of a unit.

    :param base: the address to which offsets are added.
    :param lists: offset of the table of the lists that have an index, in bytes.
    """

    def __init__(
        self, sections: DebugSections, encoding: Encoding, base: int, lists: int, find_address: FindAddress
    ) -> None:
        self._sections = sections
        self._encoding = encoding
        self._base = base
        self._lists = lists
        self._find_address = find_address

    def at(self, place: int, is_index: bool) -> list[Range]:
        """Return start and end address (exclusive) of the ranges of a list, without empty ones.

        :param place: offset of the list in its section, in bytes, or its index.
        :raises FormatError: the list is malformed, or longer than real ones.
        :raises FileError: its section cannot be decompressed.
        """
        size, order = self._encoding.offset_size, self._encoding.byteorder
        if is_index:
            data = self._sections.exactly(_RNGLISTS, self._lists + place * size, size)
            place = self._lists + int.from_bytes(data, order)
        decode, section = (self._new, _RNGLISTS) if self._encoding.version >= 5 else (self._old, _RANGES)
        length = _CHUNK
        while True:
            data = self._sections.read(section, place, length)
            try:
                return [(start, end) for start, end in decode(data) if start < end]
            except (IndexError, FormatError) as error:
                if len(data) < length or length > _MAX_LIST:
                    raise FormatError(f"malformed ranges: {error}", place, section) from error
            length *= 16  # the list is longer

    def _old(self, data: bytes) -> list[Range]:
        """Decode a list of DWARF 2 to 4.

        :raises FormatError: the data ends before the list does.
        """
        found: list[Range] = []
        base = self._base
        whole = len(data) // (2 * WORD_SIZE) * 2 * WORD_SIZE
        for start, end in struct.iter_unpack(self._sections.mark + "QQ", data[:whole]):
            if not start and not end:
                return found
            if start == ADDRESS_MASK:
                base = end
            else:
                found.append((base + start & ADDRESS_MASK, base + end & ADDRESS_MASK))
        raise FormatError("the list does not end")

    def _new(self, data: bytes) -> list[Range]:
        """Decode a list of DWARF 5.

        :raises FormatError: the data ends before the list does, or an entry is of an unknown kind.
        :raises IndexError: the data ends before the list does.
        """
        found: list[Range] = []
        base, at, find = self._base, 0, self._find_address

        def number() -> int:
            nonlocal at
            result, at = read_uleb128(data, at)
            return result

        def address() -> int:
            nonlocal at
            at += WORD_SIZE
            if at > len(data):
                raise FormatError("the list does not end")
            return int.from_bytes(data[at - WORD_SIZE : at], self._encoding.byteorder)

        while kind := data[at]:
            at += 1
            if kind == 4:  # DW_RLE_offset_pair
                start, end = base + number(), base + number()
            elif kind == 1:  # DW_RLE_base_addressx
                base = find(number())
                continue
            elif kind == 5:  # DW_RLE_base_address
                base = address()
                continue
            elif kind == 2:  # DW_RLE_startx_endx
                start, end = find(number()), find(number())
            elif kind == 3:  # DW_RLE_startx_length
                start = find(number())
                end = start + number()
            elif kind == 6:  # DW_RLE_start_end
                start, end = address(), address()
            elif kind == 7:  # DW_RLE_start_length
                start = address()
                end = start + number()
            else:
                raise FormatError(f"a range of kind {kind}")
            found.append((start & ADDRESS_MASK, end & ADDRESS_MASK))
        return found


def address_ranges(sections: DebugSections) -> list[tuple[int, int, int]]:
    """Return start, end (exclusive) and offset of the unit of each range in ``.debug_aranges`` (DWARF 5, 6.1.2).

    Data after a malformed table is ignored.

    :raises FileError: the section cannot be decompressed.
    """
    found: list[tuple[int, int, int]] = []
    mark, at = sections.mark, 0
    short, long, entries = struct.Struct(mark + "HIBB"), struct.Struct(mark + "HQBB"), struct.Struct(mark + "QQ")
    data = sections.read(_ARANGES, 0, _MAX_ARANGES)
    while at + 12 <= len(data):
        (length,), head, layout = struct.unpack_from(mark + "I", data, at), 4, short
        if length == 0xFFFFFFFF:
            (length,), head, layout = struct.unpack_from(mark + "Q", data, at + 4), 12, long
        end = at + head + length
        if end > len(data) or layout.size > length:
            break
        _, unit, address_size, segment_size = layout.unpack_from(data, at + head)
        if address_size != WORD_SIZE or segment_size:
            break
        pair = 2 * WORD_SIZE
        first = at + (head + layout.size + pair - 1) // pair * pair  # they are aligned to their size
        pairs = data[first : max(first, end - (end - first) % pair)]
        found += ((start, start + size, unit) for start, size in entries.iter_unpack(pairs) if size)
        at = end
    return found
