"""Reads headers, FDEs and rows of a section without checking their values.

The decoders of :mod:`sframe_unwind.sframe` stop at the first error, but rules of ``lint`` also need the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from sframe_unwind.address import ADDRESS_MASK, ByteOrder
from sframe_unwind.errors import FormatError, counted
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.sframe import fre, header
from sframe_unwind.sframe.constants import VERSIONS, AbiNumber, Flag, PcType
from sframe_unwind.sframe.header import Header
from sframe_unwind.sframe.raw import ADDRESS_SIZES, VERBATIM, RawFde, RawFdes, Stop, StopReason, read_rows
from sframe_unwind.sframe.section import next_header

_MAX_ROWS = 1 << 18
"""Maximum number of rows that are read from one section, besides those that fit into it: FDEs can share rows."""
_LOAD_ADDRESS = 0x7F00_0000_0000
"""Load address of a file that can be loaded anywhere.  Addresses wrap at both ends of the address space, as usual."""


class TableReading(NamedTuple):
    """One header, and its place."""

    offset: int
    """Section offset, in bytes."""
    header: Header
    """Flags and ABI may be unknown: :attr:`Header.abi` is then a plain number."""

    @property
    def fres_end(self) -> int:
        """Section offset of the end of the FRE sub-section, in bytes."""
        return self.offset + self.header.fres_end


class RawRow(NamedTuple):
    """One row."""

    offset: int
    """Section offset, in bytes."""
    start: int
    """Start, in bytes from the start of the function, or of the block."""
    row: bytes
    """Info byte and data words."""


class Entry(NamedTuple):
    """One FDE."""

    number: int
    """Its number under its header, from 0."""
    offset: int
    """Section offset, in bytes."""
    start: int
    """Start address."""
    size: int
    """Size in bytes."""
    fields: RawFde | None
    """``None``: its attribute record is outside the FRE sub-section."""

    @property
    def is_mask(self) -> bool:
        """Whether rows are found by the offset within a block."""
        return self.fields is not None and self.fields.pc_type is PcType.MASK

    @property
    def is_signal(self) -> bool:
        """Whether the function is marked as a signal trampoline; only version 3 has the mark."""
        return self.fields is not None and self.fields.is_signal

    @property
    def fde_type(self) -> int:
        """The FDE type: 0 is default, 1 is flexible; other values are not defined."""
        return self.fields.fde_type if self.fields else 0

    @property
    def fre_type(self) -> int:
        """The FRE type: 0 to 2; other values are not defined."""
        return self.fields.fre_type if self.fields else 0


class Rest(NamedTuple):
    """The bytes at which the search for a further table ends."""

    offset: int
    """Section offset, in bytes."""
    why: str
    is_first: bool
    """Whether the section has no table."""


def tables(data: bytes) -> tuple[list[TableReading], Rest | None]:
    """Return the tables of a section, and the rest of it."""
    found: list[TableReading] = []
    offset: int | None = 0 if data else None
    while offset is not None:
        try:
            byteorder, fields = header.read(data, offset)
        except FormatError as error:
            return found, Rest(offset, error.what, not found)
        version, flags, abi = fields[:3]
        if version not in VERSIONS:
            if found:
                return found, Rest(offset, f"a header of version {version}", False)
            return found, None  # the place of a further table is not known; the rule about versions reports this one
        number = AbiNumber(abi) if abi in set(AbiNumber) else cast(AbiNumber, abi)
        table = TableReading(offset, Header(byteorder, version, Flag(flags), number, *fields[3:]))
        found.append(table)
        end = offset + table.header.total_size
        if end >= len(data):
            return found, None
        offset = next_header(data, end)
        if offset is None and (rest := data[end:]).strip(b"\0"):
            return found, Rest(end, f"no header in the last {counted(len(rest), 'byte')}", False)
    return found, None


def entries(
    data: bytes, address: int, table: TableReading, relocated: bool, is_movable: bool = False
) -> Iterator[Entry]:
    """Yield the FDEs of a table that lie within the section.

    :param address: address of the section.
    :param relocated: see :class:`sframe_unwind.sframe.table.Table`.
    :param is_movable: the file can be loaded anywhere, far above 0: a start below 0 is an address before the file.
    """
    head = table.header
    fdes = RawFdes(data, table.offset, head)
    size, first = fdes.entry_size, fdes.first
    base = _LOAD_ADDRESS if is_movable else 0
    pcrel = relocated or header.starts_are_pcrel(head.version, head.flags)
    for index in range(min(head.num_fdes, max(len(data) - first, 0) // size)):
        offset = first + index * size
        field, length = fdes.start.unpack_from(data, offset)
        start = (base + address + (offset if pcrel else table.offset) + field & ADDRESS_MASK) - base
        try:
            raw: RawFde | None = fdes.read(index)
        except FormatError:
            raw = None
        yield Entry(index, offset, start, length, raw)


class RowReader:
    """Reads the rows of a section's functions, but not many more than fit into the section.

    :param data: the section.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._left = _MAX_ROWS + len(data) // fre.MIN_ROW_SIZE

    def rows(self, table: TableReading, entry: Entry) -> tuple[list[RawRow], RawRow | None, RawRow | None]:
        """Return the rows of a function, its first row outside the FRE sub-section, and its first outside the section.

        The latter two are ``None`` if there is no such row; their bytes are not read.  A row whose words have the
        invalid size is the last one, because the start of the next one is unknown; if it is outside the FRE
        sub-section, the next one counts as outside the section.

        :param entry: an FDE with attributes and a known FRE type.
        :raises FormatError: too many functions of the section claim the same rows.
        """
        fields, data = entry.fields, self._data
        if fields is None or not fields.num_rows:
            return [], None, None
        limit = min(table.fres_end, len(data))
        at = table.offset + table.header.fres_start + fields.rows_offset
        layout = ADDRESS_SIZES[entry.fre_type], table.header.byteorder
        starts, rows, stop = self._read(at, limit, fields.num_rows, layout, entry)
        found: list[RawRow] = []
        for start, row in zip(starts, rows):
            found.append(RawRow(at, start, row))
            at += layout[0] + len(row)
        if stop is None:
            return found, None, None
        if stop.reason is StopReason.WORD_SIZE:
            start = int.from_bytes(data[at : stop.info_offset], layout[1])
            return [*found, RawRow(at, start, data[stop.info_offset : stop.info_offset + 1])], None, None
        outside = RawRow(at, 0, b"")
        _, _, stop = self._read(at, len(data), fields.num_rows - len(rows), layout, entry)
        return found, outside, None if stop is None else RawRow(stop.offset, 0, b"")

    def _read(
        self, at: int, limit: int, count: int, layout: tuple[int, ByteOrder], entry: Entry
    ) -> tuple[list[int], list[bytes], Stop | None]:
        found = read_rows(
            data=self._data, offset=at, limit=limit, count=min(count, self._left + 1), layout=layout, interpret=VERBATIM
        )
        self._left -= len(found[1])
        if self._left < 0:
            raise FormatError("the functions claim the same rows over and over: too many to read", entry.offset)
        return found
