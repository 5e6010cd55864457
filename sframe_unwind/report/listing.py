"""The model of a function's listing: its instructions with the rules that apply at each.

The command line, the debuggers and the HTML page show the same listing as text, JSON and a page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any, Union

from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.report.rule_cells import VALUES, RuleCells

SFRAME, DWARF, CODE = "SFrame", "DWARF CFI", "code"
"""The titles of the columns."""

DIFFERS, WRONG, UNKNOWN, ODD = "differs", "wrong", "unknown", "odd"
"""The kinds of notes: the tables differ; the code refutes a rule; it does not tell; a table is unusual there."""


class Note(NamedTuple):
    """A sentence about the rules at one instruction."""

    kind: str
    """:data:`DIFFERS`, :data:`WRONG`, :data:`UNKNOWN` or :data:`ODD`."""
    text: str


class Refuted(NamedTuple):
    """A value of a table that the code refutes at one instruction."""

    table: str
    """The title of the column."""
    what: str
    """One of :data:`VALUES`."""


class SourceLine(NamedTuple):
    """A place in the source."""

    file: str
    line: int
    function: str
    """The inlined function; empty: the code is the function's own."""
    text: str
    """The line itself; empty: the file is not here."""


class Extra(NamedTuple):
    """The parts that only few rows have; most rows share one empty object."""

    labels: tuple[str, ...] = ()
    """Symbols at the instruction, other than that of the function."""
    source: tuple[SourceLine, ...] = ()
    """The places where the source line changes here, the innermost inlined function first."""
    relocations: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    differs: tuple[str, ...] = ()
    """The values, of :data:`VALUES`, in which the tables differ, or that the code refutes in one of them."""
    refuted: tuple[Refuted, ...] = ()
    """The values that the code refutes, each with its table."""
    values: tuple[str, ...] = ()
    """The values that the rules give in the frame of a debugger."""


PLAIN = Extra()


class Row(NamedTuple):
    """One instruction, or a place inside an instruction where a row of unwind data begins."""

    address: int
    """Its address as tools show it: in an object file, the offset in the section."""
    raw: bytes
    """Its bytes; empty: a place inside the instruction before."""
    text: str
    """The instruction in objdump's notation; empty: no disassembler is installed."""
    rules: tuple[RuleCells | None, ...]
    """The rule of each column at the instruction; ``None``: there is none."""
    begins: int
    """Bit N is set if a row of column N begins here, or its rule is not that of the instruction before."""
    extra: Extra = PLAIN


class Run(NamedTuple):
    """Consecutive instructions at which no row of a column begins, and which have no :class:`Extra`.

    Most instructions are in runs: an object for each would take longer than disassembling them.
    """

    addresses: Sequence[int]
    """As :attr:`Row.address`."""
    sizes: Sequence[int]
    """In bytes."""
    texts: Sequence[str]
    code: bytes
    """The bytes from the first instruction to the end of the last one."""
    rules: tuple[RuleCells | None, ...]
    """The rule of each column, at all of them."""

    def rows(self) -> Iterator[Row]:
        """Yield a row for each instruction."""
        base = self.addresses[0]
        raws = (self.code[at - base : at - base + size] for at, size in zip(self.addresses, self.sizes))
        return map(Row._make, zip(self.addresses, raws, self.texts, repeat(self.rules), repeat(0), repeat(PLAIN)))


Part = Union[Row, Run]


class Listing(NamedTuple):
    """The listing of one function."""

    name: str
    """Empty: no symbol covers it."""
    section: str
    """Name of the section; empty: none has the address."""
    start: int
    size: int
    """In bytes."""
    relative: bool
    """Addresses count from the start of the section."""
    columns: tuple[str, ...]
    """The titles of the columns of :attr:`Row.rules`."""
    data: tuple[str, ...]
    """For each column, the source of its rules, or the reason why there are none."""
    parts: Sequence[Part]
    """The rows; those of most instructions are in runs."""

    @property
    def rows(self) -> Iterator[Row]:
        """The rows, in order."""
        for part in self.parts:
            if isinstance(part, Run):
                yield from part.rows()
            else:
                yield part

    @property
    def special(self) -> Iterator[Row]:
        """The rows that are not in runs: no other one has a rule that begins, or a note."""
        return (part for part in self.parts if isinstance(part, Row))

    def refuted(self, address: int) -> tuple[Refuted, ...]:
        """Return the values that the code refutes at the instruction that contains an address."""
        rows = (row for row in self.special if row.address <= address < row.address + len(row.raw))
        return next((row.extra.refuted for row in rows), ())

    @property
    def differences(self) -> int:
        """The number of notes of the kinds :data:`DIFFERS` and :data:`WRONG`."""
        return self.count(DIFFERS) + self.count(WRONG)

    def count(self, kind: str) -> int:
        """Return the number of notes of a kind."""
        return sum(note.kind == kind for row in self.special if row.extra is not PLAIN for note in row.extra.notes)

    @property
    def place(self) -> str:
        """The address of the function as text."""
        return f"{self.section}+{self.start:#x}" if self.relative else f"{self.start:#x}"


def to_json(listing: Listing) -> dict[str, Any]:
    """Return the JSON object of a function in ``show --json``.

    A row has the rule of each column where it begins, and ``null`` where a column has no rule any more.
    """
    return {
        "name": listing.name,
        "section": listing.section,
        "start": listing.start,
        "size": listing.size,
        "relative": listing.relative,
        "data": dict(zip(listing.columns, listing.data)),
        "rows": [_row_json(listing, row) for row in listing.rows],
    }


def _row_json(listing: Listing, row: Row) -> dict[str, Any]:
    found: dict[str, Any] = {"address": row.address, "bytes": row.raw.hex(), "text": row.text}
    rules = {
        title: None if cells is None else cells._asdict()
        for number, (title, cells) in enumerate(zip(listing.columns, row.rules))
        if row.begins >> number & 1
    }
    if rules:
        found["rules"] = rules
    extra = row.extra
    if extra is PLAIN:
        return found
    if extra.labels:
        found["labels"] = list(extra.labels)
    if extra.source:
        found["source"] = [place._asdict() for place in extra.source]
    if extra.relocations:
        found["relocations"] = list(extra.relocations)
    if extra.differs:
        found["differs"] = [what for what in VALUES if what in extra.differs]
    if extra.notes:
        found["notes"] = [note._asdict() for note in extra.notes]
    return found
