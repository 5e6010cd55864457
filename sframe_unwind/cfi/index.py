"""Tables that find the FDE for an address: ``.eh_frame_hdr``, and those that programs register at run time.

Linux Standard Base Core 5.0, 10.6.2.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_right
from functools import cached_property

from sframe_unwind.address import ByteOrder
from sframe_unwind.cfi.constants import PE_OMIT
from sframe_unwind.cfi.pointers import Bases, read_pointer
from sframe_unwind.errors import FormatError
from sframe_unwind.memory import STRUCT_MARKS, Data, take
from sframe_unwind.named_tuple import NamedTuple

_VERSION = 1
_DATAREL_SDATA4 = 0x3B
"""The only encoding of a table that can be searched, and that linkers write."""
_HEAD = 32
"""Number of bytes that contain the fields before the table, in any encoding."""
_PAIR = 8
"""Size of an entry of a table that can be searched, in bytes."""
_BEYOND = 1 << 64
"""An address after all others."""


class Index:
    """``.eh_frame_hdr``.

    :param data: the section.
    :param address: address of the section in memory.
    :raises FormatError: its first bytes are malformed.
    """

    def __init__(self, data: Data, address: int, byteorder: ByteOrder) -> None:
        self._data = data
        self._address = address
        self._mark = STRUCT_MARKS[byteorder]
        head = take(data, 0, 4, ".eh_frame_hdr")
        version, frames_encoding, count_encoding, table_encoding = head
        if version != _VERSION:
            raise FormatError(f".eh_frame_hdr version {version}, expected {_VERSION}")
        head, bases = data[: min(_HEAD, len(data))], Bases(byteorder, address)
        self.frames, at = read_pointer(head, 4, frames_encoding, address + 4, bases)
        """Address of ``.eh_frame``."""
        self.searchable = count_encoding != PE_OMIT and table_encoding == _DATAREL_SDATA4
        """There is a table in a form that can be searched."""
        self._count = 0
        if self.searchable:
            self._count, at = read_pointer(head, at, count_encoding, address + at, bases)
        self._table = at

    def find(self, pc: int) -> Entry | None:
        """Return the last entry that starts at or before an address.

        :raises FormatError: the table ends before it should.
        """
        if not isinstance(self._data, bytes):
            return search_table(
                table=self._data, offset=self._table, count=self._count, base=self._address, mark=self._mark, pc=pc
            )
        starts, entries = self._columns
        at = bisect_right(starts, pc - self._address) - 1
        if at < 0:
            return None
        end = self._address + starts[at + 1] if at + 1 < len(starts) else _BEYOND
        return Entry(self._address + entries[at], self._address + starts[at], end)

    def last_fde(self) -> int | None:
        """Return the greatest address of an FDE; ``None``: the table has none, or cannot be searched."""
        entries = self._columns[1] if self.searchable else ()
        return self._address + max(entries) if entries else None

    @cached_property
    def _columns(self) -> tuple[array[int], array[int]]:
        """The whole table: the starts of code, and the places of its FDEs.  A search by :mod:`bisect` is fast there."""
        count = max(0, min(self._count, (len(self._data) - self._table) // _PAIR))
        numbers = array("i", self._data[self._table : self._table + count * _PAIR])
        if self._mark != STRUCT_MARKS[sys.byteorder]:
            numbers.byteswap()
        return numbers[::2], numbers[1::2]


class Entry(NamedTuple):
    """An entry of a table of FDEs."""

    fde: int
    """Address of the FDE."""
    start: int
    """The first address of the entry."""
    end: int
    """Start of the next entry; for the last entry, an address after all others."""


def search_table(table: Data, offset: int, count: int, base: int, mark: str, pc: int) -> Entry | None:
    """Return the last entry that starts at or before an address.

    :param table: data with sorted pairs of 4-byte numbers at ``offset``: the start of code, and the place of its FDE.
    :param base: the address to which both numbers are relative.
    :param mark: byte order, in the notation of :mod:`struct`.
    :raises FormatError: the table ends before it should.
    """
    pair = struct.Struct(mark + "ii")
    low, high = 0, min(count, (len(table) - offset) // pair.size)
    found, end = None, _BEYOND
    while low < high:
        middle = (low + high) // 2
        start, entry = pair.unpack(take(table, offset + middle * pair.size, pair.size, "entry of a table of FDEs"))
        if base + start <= pc:
            found = base + entry, base + start
            low = middle + 1
        else:
            end = base + start
            high = middle
    return None if found is None else Entry(*found, end)
