"""A whole SFrame section.  GNU ld writes one header; a linker that does not know SFrame concatenates several."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from sframe_unwind.address import Range, find_range
from sframe_unwind.arch import Arch
from sframe_unwind.errors import FormatError, counted
from sframe_unwind.memory import Data
from sframe_unwind.sframe.header import MAGIC_BYTES
from sframe_unwind.sframe.table import NO_FUNCTION, Function, Match, Miss, Table

ALIGNMENT = 8
"""Alignment of concatenated tables, in bytes.  Linkers fill the gap with zeros."""


class Section:
    """The SFrame data of one module.

    The constructor decodes the headers only.  A lookup in a section with one sorted table searches the section itself;
    for any other section, the first lookup builds an index.  An empty section is valid and describes no function.

    :param data: the bytes of the section.
    :param address: address at which the section is loaded.
    :param relocated: see :class:`sframe_unwind.sframe.table.Table`.
    :param size_known: ``data`` is exactly the section.  ``False``: ``data`` is a segment, which may be longer than
        the section; the headers then determine the end of the section.
    :raises FormatError: the first header is malformed.
    """

    def __init__(self, data: Data, address: int, relocated: bool = False, size_known: bool = True) -> None:
        self.address = address
        self.size = len(data)
        self.tables: list[Table] = []
        self.rest: FormatError | None = None
        """The error in the bytes after the last table; ``None``: there are none, or only padding."""
        offset: int | None = 0 if len(data) else None
        while offset is not None:
            try:
                table = Table(data, offset, address, relocated)
            except FormatError as error:
                if not self.tables:
                    raise
                if size_known:
                    what = f"{counted(len(data) - offset, 'byte')} after the last table: {error.what}"
                    self.rest = FormatError(what, error.offset)
                break
            self.tables.append(table)
            offset = next_header(data, table.end)
        end = self.tables[-1].end if self.tables else 0
        if not size_known:
            self.size = end
        elif self.rest is None and (rest := data[end:]).strip(b"\0"):
            self.rest = FormatError(f"no SFrame header in the {counted(len(rest), 'byte')} after the last table", end)
        self._index: tuple[list[int], list[Table]] | None = None

    @property
    def arch(self) -> Arch | None:
        """The architecture of the first header; ``None`` for an empty section."""
        return self.tables[0].arch if self.tables else None

    def functions(self) -> Iterator[Function]:
        """Yield all functions in the order of the section.

        :raises FormatError: an FDE is malformed.
        """
        for table in self.tables:
            yield from table.functions()

    def lookup(self, pc: int) -> Match | Miss:
        """Return the function, row and rule for an address, or the reason why there is no row.

        :param pc: lookup address: the pc of an interrupted frame, or the return address minus 1.
        :raises FormatError: the FDE or the rows of the function at this address are malformed.
        """
        if len(self.tables) == 1:
            return self.tables[0].lookup(pc)
        table = self._table_for(pc)
        return table.lookup(pc) if table else NO_FUNCTION

    def find(self, pc: int) -> Function | None:
        """Return the function that contains the address, or ``None``.

        :raises FormatError: the FDE of the function is malformed.
        """
        table = self.tables[0] if len(self.tables) == 1 else self._table_for(pc)
        return table.find(pc) if table else None

    def covered(self, code: Sequence[Range] | None = None) -> int:
        """Return the number of bytes of code that the functions of the section describe.

        :param code: count the functions that begin in these ranges, which are sorted; ``None``: all.
        """
        extents = (pair for table in self.tables for pair in zip(*table.extents()))
        return sum(size for start, size in extents if code is None or find_range(code, start) is not None)

    def _table_for(self, pc: int) -> Table | None:
        """Return the table of the last function that starts at or before the address; ``None``: there is none."""
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


def highest_version(sections: Iterable[Section]) -> int:
    """Return the highest version of the headers; 0: there is none."""
    return max((table.header.version for section in sections for table in section.tables), default=0)


def next_header(data: Data, end: int) -> int | None:
    """Return the section offset of the header after the end of a table; ``None``: there is no further header."""
    for offset in (end, end + -end % ALIGNMENT):
        if data[offset : offset + 2] in MAGIC_BYTES:
            return offset
    return None
