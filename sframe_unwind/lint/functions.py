"""The rules for FDEs and their rows, in one pass over a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sframe_unwind.lint import catalogue as c
from sframe_unwind.lint.catalogue import Rule
from sframe_unwind.lint.findings import Finding
from sframe_unwind.lint.reading import Entry, RawRow, RowReader, TableReading, entries
from sframe_unwind.lint.rows import RowRules
from sframe_unwind.lint.subject import Subject
from sframe_unwind.sframe.constants import FdeType
from sframe_unwind.sframe.fde import ADDRESS_SIZES

_MAX_FDE_TYPE = max(FdeType)


class Piece(NamedTuple):
    """A part of a function that a rule concerns."""

    low: int
    """In bytes from the start of the function; in a mask FDE, from the start of the block."""
    high: int
    """Exclusive."""
    rule: Rule


class Described(NamedTuple):
    """A function of the section, and which rules its FDE and rows break."""

    table: int
    """Number of its header, from 0."""
    offset: int
    """Section offset of its FDE, in bytes."""
    start: int
    """Address."""
    size: int
    """In bytes."""
    repetition: int
    """Size of the repeated block in bytes; 0: the FDE is no mask FDE."""
    rows: int
    """The number of rows that the FDE claims."""
    broken: tuple[tuple[Rule, Finding], ...]
    """The rules that the FDE or any of its rows breaks, each with the first place."""
    pieces: tuple[Piece, ...]
    """Parts without a row, or with a row that not every consumer can use."""

    @property
    def end(self) -> int:
        """End address (exclusive)."""
        return self.start + self.size


class Pass:
    """Reads the functions of a section.  What is found stands in the attributes.

    :raises FormatError: the functions claim the same rows over and over.
    """

    def __init__(self, subject: Subject, tables: Iterable[TableReading]) -> None:
        self.findings: list[Finding] = []
        self.functions: list[Described] = []
        self.rows_claimed: list[int] = []
        """The number of rows that the FDEs of each table claim."""
        self._subject = subject
        self._reader = RowReader(subject.data)
        for number, table in enumerate(tables):
            row_rules = RowRules(table)
            claimed = 0
            for entry in entries(subject.data, subject.address, table, subject.is_object):
                function = _Function(subject, table, entry, row_rules, self.findings)
                self.functions.append(function.described(number, self._reader))
                claimed += entry.fields.num_rows if entry.fields else 0
            self.rows_claimed.append(claimed)


class _Function:
    """One function: collects the rules that it breaks, each once."""

    def __init__(
        self, subject: Subject, table: TableReading, entry: Entry, row_rules: RowRules, findings: list[Finding]
    ) -> None:
        self._subject = subject
        self._table = table
        self._entry = entry
        self._row_rules = row_rules
        self._findings = findings
        self._broken: dict[Rule, Finding] = {}
        self._pieces: list[Piece] = []

    def described(self, number: int, reader: RowReader) -> Described:
        entry = self._entry
        self._extent()
        if entry.fields is None:
            self._break(c.FDE_ATTRIBUTES, entry.offset, "its attribute record is outside the FRE sub-section")
        else:
            self._attributes()
            if entry.fre_type < len(ADDRESS_SIZES) or not entry.fields.num_rows:
                self._rows(*reader.rows(self._table, entry))
        repetition = entry.fields.repetition_size if entry.fields and entry.is_mask else 0
        rows = entry.fields.num_rows if entry.fields else 0
        broken = tuple(self._broken.items())
        return Described(
            number, entry.offset, entry.start, entry.size, repetition, rows, broken, tuple(self._pieces)
        )

    def _break(self, rule: Rule, offset: int, message: str) -> None:
        if rule not in self._broken:
            start = self._entry.start
            finding = self._broken[rule] = Finding(rule, message, offset, start, self._subject.name_of(start))
            self._findings.append(finding)

    def _extent(self) -> None:
        entry, subject = self._entry, self._subject
        if not entry.size:
            self._break(c.FDE_SIZE_0, entry.offset, "a function of size 0")
        limit = subject.text_end(entry.start)
        if limit is None:
            self._break(c.FDE_OUTSIDE_TEXT, entry.offset, f"a function at {entry.start:#x}, where there is no code")
        elif entry.start + entry.size > (subject.code_end(entry.start) or limit):
            end = entry.start + entry.size
            self._break(c.LARGE_FUNCTION, entry.offset, f"a function that ends at {end:#x}, behind its section")
        if limit is not None and not subject.is_kept(entry.start):
            self._break(c.INIT_CODE, entry.offset, "a function in a section that a module frees when it is ready")

    def _attributes(self) -> None:
        entry, fields = self._entry, self._entry.fields
        if fields is None:
            return
        if entry.fre_type >= len(ADDRESS_SIZES):
            self._break(c.FRE_TYPE, fields.info_offset, f"FRE type {entry.fre_type}, expected 0 to 2")
        if entry.fde_type > _MAX_FDE_TYPE:
            self._break(c.FDE_TYPE, fields.info_offset + 1, f"FDE type {entry.fde_type}, expected 0 or 1")
        elif entry.fde_type == FdeType.FLEX:
            self._break(c.FLEXIBLE, fields.info_offset + 1, "a flexible FDE")
        if entry.is_mask and not fields.repetition_size:
            self._break(c.REPETITION_0, entry.offset, "a mask FDE with repetition size 0")
        if not fields.num_rows:
            kind = "signal trampoline" if entry.is_signal else "function"
            self._break(self._rowless(), entry.offset, f"a {kind} without rows")
        # Before version 3 there is no attribute record to hold the rows to the sub-section.
        if fields.num_rows and fields.rows_offset >= self._table.header.fre_size:
            self._break(c.ROW_OUTSIDE, entry.offset, f"first row at {fields.rows_offset:#x} of the FRE sub-section")

    def _rowless(self) -> Rule:
        is_marked = self._entry.is_signal and self._table.header.version >= 3
        return c.SIGNAL_WITHOUT_ROWS if is_marked else c.NO_ROWS_OF_FUNCTION

    def _rows(self, rows: list[RawRow], outside: RawRow | None) -> None:
        entry = self._entry
        length = entry.fields.repetition_size if entry.fields and entry.is_mask else entry.size
        if not rows or rows[0].start:
            first = min(rows[0].start, length) if rows else length
            if rows:
                message = f"the first row starts at {rows[0].start:#x}; what is before it has none"
                self._break(c.FIRST_ROW_LATE, rows[0].offset, message)
            self._pieces.append(Piece(0, first, c.FIRST_ROW_LATE if rows else self._rowless()))
        following = [row.start for row in rows[1:]] + [length]
        for row, end in zip(rows, following):
            for rule, message in self._row_rules.broken(entry.fde_type, row.row):
                self._break(rule, row.offset, message)
                if rule in PIECEWISE and row.start < end:
                    self._pieces.append(Piece(row.start, min(end, length), rule))
            if not entry.is_mask and row.start >= entry.size:
                rule = c.ROW_AT_END if row.start == entry.size else c.ROW_BEHIND_END
                self._break(rule, row.offset, f"a row at {row.start:#x} of a function of {entry.size:#x} bytes")
        for previous, row in zip(rows, rows[1:]):
            if row.start < previous.start:
                self._break(c.ROW_ORDER, row.offset, f"a row at {row.start:#x} behind one at {previous.start:#x}")
            elif row.start == previous.start:
                self._break(c.ROW_SAME_ADDRESS, row.offset, f"two rows at {row.start:#x}")
        if outside is not None:
            count = entry.fields.num_rows if entry.fields else 0
            self._break(c.ROW_OUTSIDE, outside.offset, f"row {len(rows)} of {count} ends behind the FRE sub-section")


PIECEWISE = (c.CFA_NOT_REGISTER, c.OUTERMOST)
"""Rules that concern the addresses of the row alone."""

