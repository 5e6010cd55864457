"""A whole SFrame section: one header as GNU ld writes it, or several that another linker concatenated."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from sframe_unwind.arch import Arch
from sframe_unwind.errors import FormatError
from sframe_unwind.memory import Data
from sframe_unwind.sframe.header import MAGIC_BYTES
from sframe_unwind.sframe.table import NO_FUNCTION, Function, Match, Miss, Table

ALIGNMENT = 8
"""Linkers align the input sections to this many bytes; the gap is zero."""


class Section:
    """The SFrame data of one module.

    Opening decodes the headers and nothing else; a section with one sorted table is searched where it lies,
    any other gets an index at the first lookup.

    :param data: the section's bytes.
    :param address: where the section is loaded.
    :param relocated: see :class:`sframe_unwind.sframe.table.Table`.
    :param size_known: ``data`` is the section and nothing else.  A segment can be longer than the section in it:
        then the headers alone tell where the data ends.
    :raises FormatError: the first header is malformed.  An empty section is no error: it covers nothing.
    """

    def __init__(self, data: Data, address: int, relocated: bool = False, size_known: bool = True) -> None:
        self.address = address
        self.size = len(data)
        self.tables: list[Table] = []
        self.rest: FormatError | None = None
        """What is wrong with the bytes behind the last table, if anything."""
        offset: int | None = 0 if len(data) else None
        while offset is not None:
            try:
                table = Table(data, offset, address, relocated)
            except FormatError as error:
                if not self.tables:
                    raise
                if size_known:
                    what = f"{len(data) - offset} bytes behind the last table: {error.what}"
                    self.rest = FormatError(what, error.offset)
                break
            self.tables.append(table)
            offset = _next_header(data, table.end)
        end = self.tables[-1].end if self.tables else 0
        if not size_known:
            self.size = end
        elif self.rest is None and (rest := data[end:]).strip(b"\0"):
            self.rest = FormatError(f"{len(rest)} bytes behind the last table are no SFrame header", end)
        self._index: tuple[list[int], list[Table]] | None = None

    @property
    def arch(self) -> Arch | None:
        """The ABI of the first header; ``None`` for an empty section."""
        return self.tables[0].arch if self.tables else None

    def functions(self) -> Iterator[Function]:
        """Yield all functions in the order of the section.

        :raises FormatError: an entry is malformed.
        """
        for table in self.tables:
            yield from table.functions()

    def lookup(self, pc: int) -> Match | Miss:
        """Return the function, row and rule for an address, or why the section has none.

        :param pc: an address inside the instruction: for a caller, its return address minus 1.
        :raises FormatError: the data for this very address is malformed.
        """
        if len(self.tables) == 1:
            return self.tables[0].lookup(pc)
        table = self._table_for(pc)
        return table.lookup(pc) if table else NO_FUNCTION

    def find(self, pc: int) -> Function | None:
        """Return the function whose descriptor contains the address.

        :raises FormatError: its entry is malformed.
        """
        table = self.tables[0] if len(self.tables) == 1 else self._table_for(pc)
        return table.find(pc) if table else None

    def covered(self) -> int:
        """Return the number of bytes of code that the functions of the section describe."""
        return sum(sum(table.extents()[1]) for table in self.tables)

    def _table_for(self, pc: int) -> Table | None:
        """Return the table with the function that starts last at or before the address."""
        if self._index is None:
            pairs = []
            for table in self.tables:
                starts, sizes = table.extents()
                pairs += [(start, table) for start, size in zip(starts, sizes) if size]
            pairs.sort(key=lambda pair: pair[0])
            self._index = [start for start, _ in pairs], [table for _, table in pairs]
        starts, tables = self._index
        at = bisect_right(starts, pc) - 1
        return tables[at] if at >= 0 else None


def _next_header(data: Data, end: int) -> int | None:
    """Return the section offset of the header that follows a table's end, ``None`` where there is none."""
    for offset in (end, end + -end % ALIGNMENT):
        if data[offset : offset + 2] in MAGIC_BYTES:
            return offset
    return None
