"""Possible layouts of a next version of SFrame, written to measure them, and read by a lookup.

They hold the contents of version 3 in the tables that ``convert`` makes: default and flexible FDEs, mask FDEs, signal
trampolines, keys.  All begin with a header of 28 bytes, as version 3.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from sframe_unwind.sframe.constants import PcType
from sframe_unwind.sframe.encode import FunctionSpec, TableSpec

HEADER = 28
_ATTRIBUTES = struct.Struct("<HBBB")
_SIZES = (1, 2, 4)
_ESCAPE = 255
"""Value of the number of a shape if the row has its own."""
_ENTRIES = struct.Struct("<qII"), struct.Struct("<II")
ENTRY, SHORT_ENTRY = (entry.size for entry in _ENTRIES)
"""The size of an entry in bytes."""
_NOTHING = 0xFFFFFFFF
"""Value of the offset of rows if there is no function."""
Row = tuple[int, tuple[int, ...]]
"""Info byte and data words."""


class Layout(NamedTuple):
    """The differences from version 3."""

    name: str
    dictionary: bool
    """Rows have the number of a shape, one byte, in the place of info byte and words; the section has the 255 most
    frequent shapes once."""
    short_index: bool
    """Entries of 8 bytes: start (4 bytes, relative to the first) and offset of the rows (4); a function ends where
    the next one starts, or where an entry for a gap does."""


VERSION_3 = Layout("version 3", dictionary=False, short_index=False)
"""Has the size of version 3, and is read in the same way."""
LAYOUTS = (
    Layout("dictionary", dictionary=True, short_index=False),
    Layout("index", dictionary=False, short_index=True),
    Layout("both", dictionary=True, short_index=True),
)


class Written(NamedTuple):
    """A section in a layout."""

    layout: Layout
    first: int
    """Address to which starts are relative."""
    shapes: tuple[bytes, ...]
    entries: bytes
    rows: bytes

    @property
    def size(self) -> int:
        """Size in bytes."""
        return HEADER + sum(map(len, self.shapes)) + len(self.entries) + len(self.rows)


def write(table: TableSpec, layout: Layout) -> Written:
    """Return a table in a layout; equal rows are shared."""
    shape = [packed(row.info, row.words) for one in table.functions for row in one.rows]
    shapes = [found for found, _ in Counter(shape).most_common(_ESCAPE)] if layout.dictionary else []
    numbers = {found: number for number, found in enumerate(shapes)}
    first = table.functions[0].start
    entries, rows, places = bytearray(), bytearray(), dict[bytes, int]()
    end = first
    for one in table.functions:
        record = _record(one, numbers, layout)
        at = places.setdefault(record, len(rows))
        if at == len(rows):
            rows += record
        if layout.short_index:
            if one.start > end:
                entries += struct.pack("<II", end - first, _NOTHING)
            entries += struct.pack("<II", one.start - first, at)
            end = one.start + one.size
        else:
            entries += struct.pack("<qII", one.start - first, one.size, at)
    if layout.short_index:
        entries += struct.pack("<II", end - first, _NOTHING)
    return Written(layout, first, tuple(shapes), bytes(entries), bytes(rows))


def lookup(written: Written, pc: int) -> Row | None:
    """Return the row for an address; ``None``: there is none."""
    found = _find(written, pc - written.first)
    if found is None:
        return None
    offset, at = found
    count, info, _, repetition = _ATTRIBUTES.unpack_from(written.rows, at)
    if repetition:
        offset %= repetition
    size, at = _SIZES[info & 0xF], at + _ATTRIBUTES.size
    row = None
    for _ in range(count):
        start = int.from_bytes(written.rows[at : at + size], "little")
        if start > offset:
            break
        row, at = _row(written, at + size)
    return row


def _find(written: Written, offset: int) -> tuple[int, int] | None:
    """Return the offset of an address in its function, and the place of the function's rows."""
    entry = _ENTRIES[written.layout.short_index]
    low = bisect_right(_Starts(written.entries, entry), offset) - 1
    if low < 0:
        return None
    fields = entry.unpack_from(written.entries, low * entry.size)
    start, at = fields[0], fields[-1]
    if at == _NOTHING or (len(fields) == 3 and offset >= start + fields[1]):
        return None
    return offset - start, at


class _Starts(Sequence[int]):
    """The starts in an index, read when they are needed."""

    def __init__(self, index: bytes, entry: struct.Struct) -> None:
        self._index, self._entry = index, entry

    def __len__(self) -> int:
        return len(self._index) // self._entry.size

    def __getitem__(self, number: int) -> int:  # type: ignore[override]  # no slices
        return int(self._entry.unpack_from(self._index, number * self._entry.size)[0])


def _row(written: Written, at: int) -> tuple[Row, int]:
    """Return the row after a start address, and the place of the next one."""
    if not written.layout.dictionary:
        return _decode(written.rows, at)
    number = written.rows[at]
    if number == _ESCAPE:
        return _decode(written.rows, at + 1)
    return _decode(written.shapes[number], 0)[0], at + 1


def _decode(data: bytes, at: int) -> tuple[Row, int]:
    info = data[at]
    layout = struct.Struct(f"<{info >> 1 & 0xF}{'bhi'[info >> 5 & 3]}")
    return (info, layout.unpack_from(data, at + 1)), at + 1 + layout.size


def _record(one: FunctionSpec, numbers: dict[bytes, int], layout: Layout) -> bytes:
    """Return attributes and rows of a function."""
    last = max((row.start for row in one.rows), default=0)
    kind = next(number for number, size in enumerate(_SIZES) if last < 1 << 8 * size)
    info = kind | (one.pc_type is PcType.MASK) << 4 | one.pauth_key << 5 | one.signal << 7
    record = bytearray(_ATTRIBUTES.pack(len(one.rows), info, one.fde_type, one.repetition_size))
    for row in one.rows:
        record += row.start.to_bytes(_SIZES[kind], "little")
        shape = packed(row.info, row.words)
        if not layout.dictionary:
            record += shape
        elif shape in numbers:
            record.append(numbers[shape])
        else:
            record += bytes([_ESCAPE]) + shape
    return bytes(record)


def packed(info: int, words: Sequence[int]) -> bytes:
    """Return info byte and data words of a row as bytes."""
    return struct.pack(f"<B{len(words)}{'bhi'[info >> 5 & 3]}", info, *words)
