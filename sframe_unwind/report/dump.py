"""Formats a whole section as text in the notation of ``readelf --sframe``; ``dump_json`` formats it as JSON.

The output is yielded in pieces, because the dump of a program is larger than the program.  Functions that cannot be
decoded are reported and marked as malformed (JSON: left out).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Callable

from sframe_unwind.errors import FormatError
from sframe_unwind.report.notation import Cells, Notations, attributes, start_column
from sframe_unwind.sframe.constants import FdeType, Flag, PcType
from sframe_unwind.sframe.fde import Fde
from sframe_unwind.sframe.fre import most_rows
from sframe_unwind.sframe.rules import RuleTable
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import Function, Table

Report = Callable[[FormatError], None]
"""Called with each error in the section."""

Numbers = Mapping[int, Sequence[int]]
"""Numbers of functions, by the number of their table in the file, ascending."""

_KEPT_TEMPLATES = 1 << 12
"""Maximum number of functions with different texts of rows whose text is kept: some 400 bytes each."""
LARGEST_ADDRESS = (1 << 64) - 1
"""Addresses are shown modulo the next number."""


class Reader:
    """Reads the functions of one table and formats their rows.  It formats each distinct row once.

    :param tail: formats a row without its address.
    :param report: called with each error.
    """

    def __init__(self, table: Table, tail: Callable[[Cells], str], report: Report) -> None:
        self._table = table
        self._report = report
        self._tails = {kind: _Tails(table, kind, tail) for kind in FdeType}
        # Functions can share rows.  Without a limit, a damaged section could make the output grow quadratically.
        self._budget = most_rows(table.header.fre_size, table.header.num_fdes)
        self._plain = table.plain_rows()
        self._interpreters = list(self._tails.values())
        self._templates: dict[tuple[int, int, tuple[str, ...]], str] = {}

    def plain_text(self, number: int, start: int, size: int) -> str | None:
        """Return the text of a function; ``None``: it is in a mask FDE, malformed, or at the end of the address space.

        Functions with equal attributes and rows share a text in which only the numbers are filled in.

        :param start: address of its first byte.
        :param size: in bytes.
        """
        found = self._plain.read_with_kind(number, self._interpreters)
        if found is None:
            return None
        kind, starts, tails = found
        if not 0 <= start <= LARGEST_ADDRESS - (starts[-1] if starts else 0) or len(starts) > self._budget:
            return None
        self._budget -= len(starts)
        key = *kind, tuple(tails)
        template = self._templates.get(key)
        if template is None:
            if len(self._templates) == _KEPT_TEMPLATES:
                self._templates.clear()
            template = self._templates[key] = _template(self._table.function(number).fde, tails)
        return template % (number, start, size, *[start + offset for offset in starts])

    def function(self, number: int) -> Function | None:
        try:
            return self._table.function(number)
        except FormatError as error:
            self._report(error)
            return None

    def rows(self, function: Function) -> list[tuple[int, str]] | None:
        """Return address (in a mask FDE: offset) and text of each row; ``None``: the rows are malformed."""
        try:
            self._charge(function)
            tails = self._tails[function.fde.fde_type]
            base = 0 if function.fde.pc_type is PcType.MASK else function.start
            try:
                return [(base + start, tails[raw]) for start, raw in self._table.raw_rows(function)]
            except FormatError:
                self._table.rows(function)  # raises the same error with its offset
                raise
        except FormatError as error:
            self._report(error)
            return None

    def _charge(self, function: Function) -> None:
        self._budget -= function.fde.num_rows
        if self._budget < 0:
            raise FormatError(
                f"function at {function.start:#x}: with its {function.fde.num_rows} rows there are more than functions"
                " may share: they claim the same rows over and over",
                self._table.offset + self._table.header.fres_start + function.fde.rows_offset,
            )


class _Tails(dict[bytes, str]):
    """Maps the bytes of a row to its text.  Rows without a valid rule raise :class:`FormatError`."""

    def __init__(self, table: Table, kind: FdeType, tail: Callable[[Cells], str]) -> None:
        super().__init__()
        self._rules = RuleTable(table.header, kind)
        self._cells = Notations(table.header, kind)
        self._tail = tail

    def __missing__(self, row: bytes) -> str:
        self._rules[row]
        text = self[row] = self._tail(self._cells[row])
        return text


def to_text(sections: Iterable[Section], report: Report, only: Numbers | None = None) -> Iterator[str]:
    """Yield the text of the sections of a file in pieces of whole lines.

    :param only: the numbers of the functions to show; ``None``: all.
    """
    tables = count()
    for section in sections:
        yield "Contents of the SFrame section .sframe:\n"
        if not section.tables:
            yield "  empty\n"
        for table in section.tables:
            yield from _table_text(table, report, chosen(table, next(tables), only))
        if section.rest is not None:
            report(section.rest)


def chosen(table: Table, place: int, only: Numbers | None) -> Sequence[int]:
    return range(len(table)) if only is None else only.get(place, ())


def _table_text(table: Table, report: Report, numbers: Sequence[int]) -> Iterator[str]:
    yield "\n".join(_header_lines(table)) + "\n\n  Function Index :\n"
    reader = Reader(table, str, report)
    starts, sizes = table.extents()
    for number in numbers:
        yield reader.plain_text(number, starts[number], sizes[number]) or _function_text(reader, number)


def _function_text(reader: Reader, number: int) -> str:
    """Return the text of a function of any kind."""
    function = reader.function(number)
    if function is None:
        return f"\n    func idx [{number}]: malformed\n"
    fde = function.fde
    numbers = number, function.start & LARGEST_ADDRESS, fde.size
    rows = reader.rows(function)
    if rows is None:
        return _title(fde) % numbers + "    malformed\n"
    addresses = (address & LARGEST_ADDRESS for address, _ in rows)
    return _template(fde, [tail for _, tail in rows]) % (*numbers, *addresses)


def _template(fde: Fde, tails: Iterable[str]) -> str:
    """Return the text of a function, without its number, start address, size, and the addresses of its rows.

    :param tails: the texts of the rows.
    """
    columns = f"    {start_column(fde):<16}CFA       FP        RA\n"
    return _title(fde) + columns + "".join([f"    %016x  {tail}\n" for tail in tails])


def _title(fde: Fde) -> str:
    """Return the line above the rows of a function, without number, start address and size."""
    repetition = f", repetition = {fde.repetition_size} bytes" if fde.pc_type is PcType.MASK else ""
    return f"\n    func idx [%d]: pc = %#x, size = %d bytes{attributes(fde)}{repetition}\n"


def _header_lines(table: Table) -> list[str]:
    header = table.header
    flags = [f"SFRAME_F_{flag.name}" for flag in Flag if flag in header.flags] or ["NONE"]
    lines = [
        f"  Header at offset {table.offset:#x} :" if table.offset else "  Header :",
        "",
        f"    Version: SFRAME_VERSION_{header.version}",
        f"    ABI: {table.arch.name}",
        "    Flags: " + ",\n           ".join(flags),
    ]
    if header.fixed_fp_offset:
        lines.append(f"    CFA fixed FP offset: {header.fixed_fp_offset}")
    if header.fixed_ra_offset:
        lines.append(f"    CFA fixed RA offset: {header.fixed_ra_offset}")
    if header.aux_size:
        lines.append(f"    Auxiliary header: {header.aux_size} bytes")
    return [*lines, f"    Num FDEs: {header.num_fdes}", f"    Num FREs: {header.num_fres}"]
