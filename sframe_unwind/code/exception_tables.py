"""Where exceptions are caught: the tables of C++'s and C's clean-ups, which FDEs refer to.

Linux Standard Base Core 5.0, 10.6, for ``.eh_frame``; the language-specific data is GCC's, which Clang follows.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple, Union

from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.code.image import CodeImage
from sframe_unwind.memory import STRUCT_MARKS

_OMIT, _PC_RELATIVE, _INDIRECT = 0xFF, 0x10, 0x80
_FORMATS = {0x0: "Q", 0x2: "H", 0x3: "I", 0x4: "Q", 0x8: "q", 0xA: "h", 0xB: "i", 0xC: "q"}
_ULEB = 0x1
_ABSOLUTE = 0
_MAX_TABLE = 1 << 20
"""Bytes."""

Number = Union[int, None]


class CallSite(NamedTuple):
    """Calls that share a landing pad."""

    start: int
    """Address."""
    end: int
    landing_pad: int


class ExceptionTables:
    """The landing pads of a file.

    :param eh_frame: contents of the section, relocated.
    :param address: where it is loaded.
    """

    def __init__(self, eh_frame: bytes, address: int, byteorder: str, image: CodeImage) -> None:
        self._image = image
        self._mark = STRUCT_MARKS[byteorder]
        self._byteorder = byteorder
        found = sorted(_Reader(eh_frame, address, self._mark).functions())
        self._starts = [start for start, _, _ in found]
        self._functions = found
        self._known: dict[int, list[CallSite]] = {}

    def landing_pads(self, pc: int) -> list[int]:
        """Return where an exception that passes through a call may be caught.

        :param pc: an address of the call instruction: one before the return address.
        """
        at = bisect_right(self._starts, pc) - 1
        if at < 0:
            return []
        start, end, table = self._functions[at]
        if pc >= end:
            return []
        if table not in self._known:
            self._known[table] = list(self._call_sites(table, start))
        return [site.landing_pad for site in self._known[table] if site.start <= pc < site.end]

    def _call_sites(self, table: int, function: int) -> Iterator[CallSite]:
        section = self._image.section(table)
        if section is None:
            return
        offset = table - section.start
        data = section.contents[offset : offset + _MAX_TABLE]
        reader = _Reader(data, table, self._mark)
        try:
            yield from reader.call_sites(function)
        except (IndexError, struct.error):
            return  # cut short: what it says up to there counts


class _Reader:
    def __init__(self, data: bytes, address: int, mark: str) -> None:
        self._data = data
        self._address = address
        self._mark = mark
        self._at = 0

    def functions(self) -> Iterator[tuple[int, int, int]]:
        """Yield start and end of each function with a table, and the table's address."""
        commons: dict[int, _Common | None] = {}
        data, mark = self._data, self._mark
        offset = 0
        while offset + 8 <= len(data):
            (size,) = struct.unpack_from(mark + "I", data, offset)
            body = offset + 4
            if not size or size == 0xFFFFFFFF or body + size > len(data):
                return
            (pointer,) = struct.unpack_from(mark + "I", data, body)
            if pointer:
                place = body - pointer
                if place not in commons:
                    commons[place] = self._common_if_readable(place)
                common = commons[place]
                if common is not None and common.table_encoding != _OMIT:
                    found = self._function_if_readable(body + 4, common)
                    if found is not None:
                        yield found
            offset = body + size

    def _common_if_readable(self, offset: int) -> _Common | None:
        try:
            return self._common(offset)
        except (IndexError, ValueError, struct.error):
            return None

    def _function_if_readable(self, offset: int, common: _Common) -> tuple[int, int, int] | None:
        try:
            return self._function(offset, common)
        except (IndexError, ValueError, struct.error):
            return None

    def _common(self, offset: int) -> _Common | None:
        end = self._data.index(b"\0", offset + 9)
        letters = self._data[offset + 9 : end].decode("latin-1")
        if not letters.startswith("z"):
            return None
        version = self._data[offset + 8]
        self._at = end + 1
        self._uleb()
        self._uleb()
        if version == 1:
            self._at += 1
        else:
            self._uleb()
        self._uleb()
        encoding, table_encoding = _ABSOLUTE, _OMIT
        for letter in letters[1:]:
            if letter == "R":
                encoding = self._byte()
            elif letter == "L":
                table_encoding = self._byte()
            elif letter == "P":
                self._pointer(self._byte())
            elif letter not in "SBG":
                return None
        return _Common(encoding, table_encoding)

    def _function(self, offset: int, common: _Common) -> tuple[int, int, int] | None:
        self._at = offset
        start = self._pointer(common.encoding)
        size = self._pointer(common.encoding & 0xF)
        self._uleb()
        table = self._pointer(common.table_encoding)
        return (start, start + size, table) if start is not None and size is not None and table else None

    def call_sites(self, function: int) -> Iterator[CallSite]:
        """Yield the call sites of a table."""
        encoding = self._byte()
        base = function if encoding == _OMIT else self._pointer(encoding)
        if self._byte() != _OMIT:
            self._uleb()
        encoding = self._byte()
        end = self._uleb() + self._at
        while self._at < end:
            start, size, pad = self._pointer(encoding), self._pointer(encoding), self._pointer(encoding)
            self._uleb()
            if pad and None not in (start, size, base):
                yield CallSite(function + (start or 0), function + (start or 0) + (size or 0), (base or 0) + pad)

    def _byte(self) -> int:
        value = self._data[self._at]
        self._at += 1
        return value

    def _uleb(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80 or shift > 63:
                return value

    def _pointer(self, encoding: int) -> Number:
        """Return the pointer that comes next; ``None``: it is null, or cannot be told."""
        at = self._at
        kind = encoding & 0xF
        if encoding == _OMIT:
            return None
        if kind == _ULEB:
            value = self._uleb()
        elif kind in _FORMATS:
            layout = struct.Struct(self._mark + _FORMATS[kind])
            (value,) = layout.unpack_from(self._data, at)
            self._at += layout.size
        else:
            raise ValueError(f"pointer encoding {encoding:#x}")
        if not value:
            return 0
        if encoding & _INDIRECT:
            return None
        return value + (self._address + at if encoding & 0x70 == _PC_RELATIVE else 0) & ADDRESS_MASK


class _Common(NamedTuple):
    encoding: int
    table_encoding: int
