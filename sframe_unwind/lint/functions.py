"""The rules for FDEs and their rows, in one pass over a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sframe_unwind.errors import counted
from sframe_unwind.lint import catalogue as c
from sframe_unwind.lint.catalogue import Rule
from sframe_unwind.lint.findings import Finding
from sframe_unwind.lint.reading import Entry, RawRow, RowReader, TableReading, entries
from sframe_unwind.lint.rows import RowRules
from sframe_unwind.lint.subject import Subject
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.sframe.constants import FEATURES, FdeType
from sframe_unwind.sframe.raw import ADDRESS_SIZES, RawFde

_MAX_FDE_TYPE = max(FdeType)


class Piece(NamedTuple):
    """A part of a function that a rule concerns."""

    low: int
    """Start, in bytes from the start of the function; in a mask FDE, from the start of the block."""
    high: int
    """End (exclusive)."""
    rule: Rule


class Described(NamedTuple):
    """A function of the section, and the rules that its FDE and rows break."""

    table: int
    """Number of its header, from 0."""
    offset: int
    """Section offset of its FDE, in bytes."""
    start: int
    """Start address."""
    size: int
    """Size in bytes."""
    repetition: int
    """Size of the repeated block in bytes; 0: the FDE is not a mask FDE."""
    rows: int
    """The number of rows that the FDE claims."""
    broken: tuple[tuple[Rule, Finding], ...]
    """The rules that the FDE or any of its rows breaks, each with the first place where it is broken."""
    pieces: tuple[Piece, ...]
    """Parts without a row, or with a row that not every consumer can use."""

    @property
    def end(self) -> int:
        """End address (exclusive)."""
        return self.start + self.size


def by_table(functions: Iterable[Described], tables: Sequence[TableReading]) -> list[list[Described]]:
    """Return the functions under each header, in the order of the section."""
    grouped: list[list[Described]] = [[] for _ in tables]
    for function in functions:
        grouped[function.table].append(function)
    return grouped


class Pass:
    """Reads the functions of a section.

    :raises FormatError: too many functions claim the same rows.
    """

    def __init__(self, subject: Subject, tables: Iterable[TableReading]) -> None:
        self.functions: list[Described] = []
        self.rows_claimed: list[int] = []
        """The number of rows that the FDEs of each table claim."""
        reader = RowReader(subject.data)
        for number, table in enumerate(tables):
            row_rules = RowRules(table)
            first = len(self.functions)
            for entry in entries(subject.data, subject.address, table, subject.is_object, subject.is_movable):
                self.functions.append(_Function(subject, table, entry, row_rules).described(number, reader))
            self.rows_claimed.append(sum(function.rows for function in self.functions[first:]))


class _Function:
    """One function: collects the rules that it breaks, each once."""

    def __init__(self, subject: Subject, table: TableReading, entry: Entry, row_rules: RowRules) -> None:
        self._subject = subject
        self._table = table
        self._entry = entry
        self._row_rules = row_rules
        self._broken: dict[Rule, Finding] = {}
        self._pieces: list[Piece] = []

    def described(self, number: int, reader: RowReader) -> Described:
        """Judge the function.

        :param number: number of its header, from 0.
        """
        entry, fields = self._entry, self._entry.fields
        self._extent()
        if fields is None:
            self._break(c.FDE_ATTRIBUTES, entry.offset, "its attribute record is outside the FRE sub-section")
        else:
            self._attributes(fields)
            if entry.fre_type < len(ADDRESS_SIZES) or not fields.num_rows:
                self._rows(fields, *reader.rows(self._table, entry))
        return Described(
            table=number,
            offset=entry.offset,
            start=entry.start,
            size=entry.size,
            repetition=fields.repetition_size if fields and entry.is_mask else 0,
            rows=fields.num_rows if fields else 0,
            broken=tuple(self._broken.items()),
            pieces=tuple(self._pieces),
        )

    def _break(self, rule: Rule, offset: int, message: str) -> None:
        if rule not in self._broken:
            start = self._entry.start
            self._broken[rule] = Finding(rule, message, offset, start, self._subject.name_of(start))

    def _extent(self) -> None:
        entry, subject = self._entry, self._subject
        if not entry.size:
            self._break(c.FDE_SIZE_0, entry.offset, "a function of size 0")
        limit = subject.text_end(entry.start)
        if limit is None:
            self._break(c.FDE_OUTSIDE_TEXT, entry.offset, f"a function at {entry.start:#x}, where there is no code")
            return
        end = entry.start + entry.size
        if end > (subject.code_end(entry.start) or limit):
            self._break(c.LARGE_FUNCTION, entry.offset, f"a function that ends at {end:#x}, after its section")
        if not subject.is_kept(entry.start):
            self._break(c.INIT_CODE, entry.offset, "a function in a section that a module frees when it is ready")

    def _attributes(self, fields: RawFde) -> None:
        entry = self._entry
        if entry.fre_type >= len(ADDRESS_SIZES):
            self._break(c.FRE_TYPE, fields.info_offset, f"FRE type {entry.fre_type}, expected 0 to 2")
        if entry.fde_type > _MAX_FDE_TYPE:
            self._break(c.FDE_TYPE, fields.info_offset + 1, f"FDE type {entry.fde_type}, expected 0 or 1")
        elif entry.fde_type == FdeType.FLEX:
            self._break(c.FLEXIBLE, fields.info_offset + 1, "a flexible FDE")
        if entry.is_mask and not fields.repetition_size:
            self._break(c.REPETITION_0, entry.offset, "a mask FDE with repetition size 0")
        elif entry.is_mask:
            self._break(
                c.MASK_FDE, entry.offset, f"a mask FDE that repeats every {counted(fields.repetition_size, 'byte')}"
            )
        if not fields.num_rows:
            kind = "signal trampoline" if entry.is_signal else "function"
            self._break(self._rowless(), entry.offset, f"a {kind} without rows")
        # Before version 3, there is no attribute record that confines the rows to the sub-section.
        elif fields.rows_offset >= self._table.header.fre_size:
            self._break(c.ROW_OUTSIDE, entry.offset, f"first row at {fields.rows_offset:#x} of the FRE sub-section")

    def _rowless(self) -> Rule:
        is_marked = self._entry.is_signal and FEATURES[self._table.header.version].signal
        return c.SIGNAL_WITHOUT_ROWS if is_marked else c.NO_ROWS_OF_FUNCTION

    def _rows(self, fields: RawFde, rows: list[RawRow], outside: RawRow | None, after_section: RawRow | None) -> None:
        """Judge the rows.

        :param outside: the first row that is not within the FRE sub-section.
        :param after_section: the first row that is not within the section.
        """
        length = fields.repetition_size if self._entry.is_mask else self._entry.size
        if not fields.num_rows:
            self._pieces.append(Piece(0, length, self._rowless()))
        elif rows and rows[0].start:
            message = f"the first row starts at {rows[0].start:#x}; what is before it has none"
            self._break(c.FIRST_ROW_LATE, rows[0].offset, message)
            self._pieces.append(Piece(0, min(rows[0].start, length), c.FIRST_ROW_LATE))
        ends = [min(row.start, length) for row in rows[1:]] + [length]
        for row, end in zip(rows, ends):
            self._row(row, end)
        for previous, row in zip(rows, rows[1:]):
            if row.start < previous.start:
                self._break(c.ROW_ORDER, row.offset, f"a row at {row.start:#x} after one at {previous.start:#x}")
            elif row.start == previous.start:
                self._break(c.ROW_SAME_ADDRESS, row.offset, f"two rows at {row.start:#x}")
        if len(rows) > 1 and not rows[1].start:
            self._break(c.ROW_SAME_START, rows[1].offset, "the second row starts at 0x0")
        if outside is not None:
            message = f"row {len(rows)} of {fields.num_rows} ends after the FRE sub-section"
            self._break(c.ROW_OUTSIDE, outside.offset, message)
        if after_section is not None:
            self._break(c.ROW_OUTSIDE_SECTION, after_section.offset, "the rows go on after the section")

    def _row(self, row: RawRow, end: int) -> None:
        """Judge a row.

        :param end: start of the next row, or end of the function or block.
        """
        entry = self._entry
        for rule, message in self._row_rules.broken(entry.fde_type, row.row):
            self._break(rule, row.offset, message)
            if rule in _OF_ONE_ROW and row.start < end:
                self._pieces.append(Piece(row.start, end, rule))
        if entry.is_mask and row.start >= entry.size:
            message = f"a row at {row.start:#x} of a block, in a function of {entry.size:#x} bytes"
            self._break(c.MASK_ROW_AFTER_END, row.offset, message)
        if not entry.is_mask and row.start >= entry.size:
            rule = c.ROW_AT_END if row.start == entry.size else c.ROW_AFTER_END
            self._break(rule, row.offset, f"a row at {row.start:#x} of a function of {entry.size:#x} bytes")


_OF_ONE_ROW = (c.CFA_NOT_REGISTER, c.OUTERMOST)
"""Rules that concern only the addresses of the row."""
