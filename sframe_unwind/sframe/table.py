"""The functions under one header: search by address, and decoding of rows on demand."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from operator import le
from typing import TYPE_CHECKING

from sframe_unwind.arch import Arch
from sframe_unwind.errors import FormatError
from sframe_unwind.memory import Data
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.sframe import fde as fdes
from sframe_unwind.sframe import fre, header
from sframe_unwind.sframe.constants import ARCH_BY_ABI, FdeType, Flag, PcType
from sframe_unwind.sframe.fde import Fde
from sframe_unwind.sframe.header import Header
from sframe_unwind.sframe.raw import VERBATIM, Interpreted, RawFdes, RowInterpreter
from sframe_unwind.sframe.rules import RuleTable
from sframe_unwind.unwind_rule import UnwindRule

if TYPE_CHECKING:
    from sframe_unwind.sframe.plain_rows import PlainRows


class Function(NamedTuple):
    """A function: its FDE, and its absolute address."""

    start: int
    """Address of the first byte."""
    fde: Fde
    number: int
    """Number of the FDE under its header, from 0."""
    table: Table

    @property
    def end(self) -> int:
        """End address (exclusive)."""
        return self.start + self.fde.size

    def rows(self) -> list[tuple[int, UnwindRule]]:
        """Return start offset and rule of each row.

        Offsets are in bytes from the start of the function; in a mask FDE, from the start of the block.

        :raises FormatError: a row is malformed.
        """
        return list(zip(*self.table.rows(self)))


class Match(NamedTuple):
    """The result of a successful lookup."""

    function: Function
    row_start: int
    """Start offset of the row, in bytes from the start of the function; in a mask FDE, from the start of the block."""
    rule: UnwindRule

    @property
    def arch(self) -> Arch:
        """The architecture of the rule's registers."""
        return self.function.table.arch


class Miss(NamedTuple):
    """The result of a lookup that found no row."""

    reason: str
    function: Function | None
    """The function that contains the address; ``None``: no function does."""


NO_FUNCTION = Miss("no SFrame function contains the address", None)


class Table:
    """One header with its function descriptor entries and rows.

    :param data: the whole section.
    :param offset: section offset of the header, in bytes.
    :param address: address at which the section is loaded.
    :param relocated: relocations filled in the start fields, as in an object file.  The flag FDE_SORTED then does not
        apply to them.
    :raises FormatError: the header is malformed, or a sub-section ends after the end of the section.
    """

    def __init__(self, data: Data, offset: int, address: int, relocated: bool = False) -> None:
        self.header: Header = header.decode(data, offset)
        header.check_extent(self.header, len(data), offset)
        self.offset = offset
        self.arch: Arch = ARCH_BY_ABI[self.header.abi]
        self._data = data
        self._address = address
        self._raw = RawFdes(data, offset, self.header)
        self._entries, self._entry_size = self._raw.first, self._raw.entry_size
        self._start = self._raw.start
        # Relocations of assemblers are relative to the field.  Before V2 errata 1, no flag marked this, and GNU ld
        # made the starts relative to the section when it linked.
        self._pcrel = relocated or header.starts_are_pcrel(self.header.version, self.header.flags)
        self._fres = offset + self.header.fres_start
        self._fres_end = offset + self.header.fres_end
        self.rules = {kind: RuleTable(self.header, kind, offset) for kind in FdeType}
        """The interpreter of the rows of each type of FDE, for :meth:`interpreted_rows`; it keeps the rules."""
        self._rows: dict[int, tuple[list[int], list[UnwindRule]]] = {}
        self._order: tuple[list[int], list[int]] | None = None
        self._claim_checked = False
        self.sorted = bool(self.header.flags & Flag.FDE_SORTED) and not relocated

    def __len__(self) -> int:
        return self.header.num_fdes

    @property
    def end(self) -> int:
        """Section offset of the end of this table, in bytes."""
        return self.offset + self.header.total_size

    @property
    def start_fields(self) -> range:
        """The section offsets of the start fields of all FDEs, in bytes."""
        return range(self._entries, self._entries + len(self) * self._entry_size, self._entry_size)

    @property
    def aux_header(self) -> bytes:
        """The bytes of the auxiliary header.  No version defines its contents."""
        start = self.offset + self.header.aux_start
        return self._data[start : start + self.header.aux_size]

    def extent(self, index: int) -> tuple[int, int]:
        """Return start address and size (bytes) of function ``index``.  The other fields of its FDE are not read."""
        entry = self._entries + index * self._entry_size
        start, size = self._start.unpack(self._data[entry : entry + self._start.size])
        # A start relative to the section is relative to the input section, of which a section can hold several.
        origin = entry if self._pcrel else self.offset
        return self._address + origin + start, size

    def function(self, index: int) -> Function:
        """Return function ``index``, counted from 0.

        :raises FormatError: its FDE is malformed.
        """
        return self.function_at(self.extent(index)[0], index)

    def function_at(self, start: int, index: int) -> Function:
        """Return function ``index``, whose start address is known.

        :raises FormatError: its FDE is malformed.
        """
        fde = fdes.decode(self._raw, self.header, index)
        return tuple.__new__(Function, (start, fde, index, self))  # half the time of calling the class

    def functions(self) -> Iterator[Function]:
        """Yield all functions in the order of the section.

        :raises FormatError: an FDE is malformed.
        """
        return map(self.function, range(len(self)))

    def extents(self) -> tuple[list[int], list[int]]:
        """Return the start addresses and the sizes (bytes) of all functions, in the order of the section."""
        raw = self._data[self._entries : self._entries + len(self) * self._entry_size]
        pairs = list(struct.iter_unpack(f"{self._start.format}{self._entry_size - self._start.size}x", raw))
        base = self._address + (self._entries if self._pcrel else self.offset)
        step = self._entry_size if self._pcrel else 0
        return [base + step * i + start for i, (start, _) in enumerate(pairs)], [size for _, size in pairs]

    def plain_rows(self) -> PlainRows:
        """Return an object that reads the rows of many functions as fast as possible."""
        from sframe_unwind.sframe.plain_rows import PlainRows  # few uses read all rows

        return PlainRows(self._data, self.offset, self.header)

    def rows(self, function: Function) -> tuple[list[int], list[UnwindRule]]:
        """Return the start offsets (in bytes from the start of the function) and the rules of a function's rows.

        :raises FormatError: a row is malformed.
        """
        known = self._rows.get(function.number)
        if known is None:
            known = self.interpreted_rows(function, self.rules[function.fde.fde_type])
            self._rows[function.number] = known
        return known

    def raw_rows(self, function: Function) -> list[tuple[int, bytes]]:
        """Return the undecoded rows of a function: start offset in bytes, and the bytes of info byte and data words.

        :raises FormatError: a row is malformed.
        """
        return list(zip(*self.interpreted_rows(function, VERBATIM)))

    def interpreted_rows(
        self, function: Function, interpret: RowInterpreter[Interpreted]
    ) -> tuple[list[int], list[Interpreted]]:
        """Return the start offsets (in bytes) of a function's rows, and each row as an interpreter returns it.

        :param interpret: maps the info byte and the data words of a row to the value to return.
        :raises FormatError: a row is malformed.
        """
        entry = function.fde
        try:
            return fre.decode(
                data=self._data,
                offset=self._fres + entry.rows_offset,
                limit=self._fres_end,
                count=entry.num_rows,
                layout=(entry.address_size, self.header.byteorder),
                interpret=interpret,
            )
        except FormatError as error:
            raise FormatError(f"function at {function.start:#x}: {error.what}", error.offset) from None

    def find(self, pc: int) -> Function | None:
        """Return the function that contains the address, or ``None``.

        :raises FormatError: its FDE is malformed.
        """
        index = self._search(pc) if self.sorted else None
        if index is None and self.sorted and not self._claim_checked:
            # FDE_SORTED may be wrong; verify it once, on the first miss.
            self._claim_checked = True
            starts, _ = self.extents()
            self.sorted = all(map(le, starts, starts[1:]))
        if not self.sorted:
            index = self._search_unsorted(pc)
        return None if index is None else self.function(index)

    def lookup(self, pc: int) -> Match | Miss:
        """Return the row for an address, or the reason why there is no row.

        :param pc: lookup address; see :meth:`sframe_unwind.sframe.section.Section.lookup`.
        :raises FormatError: the FDE or the rows of the function are malformed.
        """
        function = self.find(pc)
        if function is None:
            return NO_FUNCTION
        offset = pc - function.start
        if function.fde.pc_type is PcType.MASK:
            offset %= function.fde.repetition_size
        starts, rules = self.rows(function)
        at = bisect_right(starts, offset) - 1
        return _before_rows(function) if at < 0 else Match(function, starts[at], rules[at])

    def _search(self, pc: int) -> int | None:
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self.extent(middle)[0] <= pc:
                low = middle + 1
            else:
                high = middle
        # Skip empty functions: they can be between the pc and the function that contains it.
        for index in range(low - 1, -1, -1):
            start, size = self.extent(index)
            if start <= pc < start + size:  # if the table is not really sorted, the start can be above pc
                return index
            if size:
                break
        return None

    def _search_unsorted(self, pc: int) -> int | None:
        if self._order is None:
            starts, sizes = self.extents()
            order = [i for i in range(len(starts)) if sizes[i]]
            order.sort(key=starts.__getitem__)
            self._order = [starts[i] for i in order], order
        sorted_starts, order = self._order
        at = bisect_right(sorted_starts, pc) - 1
        if at < 0:
            return None
        start, size = self.extent(order[at])
        return order[at] if pc < start + size else None


def _before_rows(function: Function) -> Miss:
    if function.fde.num_rows:
        return Miss(f"the address lies before the first row of the function at {function.start:#x}", function)
    kind = "signal trampoline" if function.fde.signal else "function"
    return Miss(f"SFrame lists the {kind} at {function.start:#x} without rows", function)
