"""Looks up many addresses, and prints one line for each.

A lookup searches the functions, and then the rows of one function, both in sorted lists.  The text of a row is made
once, which takes a fraction of the time that explaining the rule in words takes.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from sframe_unwind.cli.addresses import Addresses
from sframe_unwind.elf.symbols import Symbols
from sframe_unwind.report.notation import Cells, cells, cells_of
from sframe_unwind.report.terminal import printable
from sframe_unwind.sframe.constants import FdeType
from sframe_unwind.sframe.header import Header
from sframe_unwind.sframe.rules import RuleTable
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import NO_FUNCTION, Match, Miss, Table

_NUMBER = re.compile("0x[0-9a-fA-F]{1,16}")
"""An address in hexadecimal.  ``int`` also accepts signs, spaces, underscores and other digits."""
_MOST = 1 << 17
"""Maximum number of lines to keep: the addresses of a profile are repeated."""


_Known = tuple[list[int], list[str], str, int]
"""The texts for the addresses of one function: start of each row, in bytes from the start of the function; the rows;
name and address of the symbol that covers the whole function.  Making a tuple is faster than making an object."""


class Lines:
    """The lines for addresses of one file.

    :param addresses: formats the addresses.
    """

    def __init__(self, sections: list[Section], symbols: Symbols, addresses: Addresses) -> None:
        self._sections = sections
        self._symbols = symbols
        self._addresses = addresses
        found: list[tuple[int, int, _Reader, int]] = []
        for table in (table for section in sections for table in section.tables):
            reader = _Reader(table)
            starts, sizes = table.extents()
            found += ((start, start + size, reader, at) for at, (start, size) in enumerate(zip(starts, sizes)) if size)
        found.sort(key=lambda one: one[:2])
        self._starts = [start for start, _, _, _ in found]
        self._ends = [end for _, end, _, _ in found]
        self._places = [(reader, at) for _, _, reader, at in found]
        self._known: list[_Known | None] = [None] * len(found)
        self._plain: dict[str, str] = {}
        self._others: dict[str, list[tuple[str, bool]]] = {}
        apart = all(end <= start for end, start in zip(self._ends, self._starts[1:]))
        self._is_plain = apart and not addresses.in_sections
        """Whether no two functions overlap, and addresses are numbers."""

    def plain(self, texts: list[str]) -> dict[str, str]:
        """Return the lines for texts, for those of them that are numbers of addresses in plain functions."""
        for kept in self._plain, self._others:
            if len(kept) > _MOST:
                kept.clear()
        if self._is_plain:
            # Data that is close in the file is close in memory: in ascending order, this takes two thirds of the time.
            for text in sorted(set(texts).difference(self._plain)):
                self._add(text)
        return self._plain

    def _add(self, text: str) -> None:
        """Make the line for a text, if it is the number of an address in a plain function."""
        try:
            address = int(text, 16)
        except ValueError:
            return
        shown = hex(address)
        if shown != text and not _NUMBER.fullmatch(text):
            return
        at = bisect_right(self._starts, address) - 1
        if at < 0 or address >= self._ends[at]:
            return
        known = self._known[at] or self._learn(at)
        if known is None:
            return
        offsets, rows, name, origin = known
        row = bisect_right(offsets, address - self._starts[at]) - 1
        if row >= 0:
            self._plain[text] = f"{shown}: {name}+{hex(address - origin)}: {rows[row]}\n"

    def single(self, text: str) -> list[tuple[str, bool]]:
        """Return the lines for a text, each with whether SFrame covers the address; none for an empty text.

        :raises FileError: the text is not an address.
        :raises FormatError: the function at the address is malformed.
        """
        found = self._others.get(text)
        if found is None:
            addresses = self._addresses.find(text) if text else []
            found = self._others[text] = [self._answer(address) for address in addresses]
        return found

    def _learn(self, at: int) -> _Known | None:
        """Return the texts for a function; ``None``: it is not plain, or malformed."""
        symbol = self._symbols.covering(self._starts[at], self._ends[at])
        reader, number = self._places[at]
        rows = reader.rows(number)
        if symbol is None or rows is None:
            return None
        known = self._known[at] = (*rows, printable(symbol.name), symbol.address)
        return known

    def _answer(self, address: int) -> tuple[str, bool]:
        found = look_up(self._sections, address)
        name = self._symbols.name(address)
        if name is None:
            name = "(no symbol)"
        elif "+" not in name:
            name += "+0x0"
        said = f"not covered: {found.reason}" if isinstance(found, Miss) else _row(cells_of(found))
        return f"{self._addresses.shown(address)}: {printable(name)}: {said}\n", isinstance(found, Match)


def look_up(sections: list[Section], address: int) -> Match | Miss:
    """Return the result of the first section that has a function at an address.

    :raises FormatError: the function is malformed.
    """
    found: Match | Miss = NO_FUNCTION
    for section in sections:
        found = section.lookup(address)
        if found.function:
            break
    return found


class _Reader:
    """Makes the texts for the rows of one table."""

    def __init__(self, table: Table) -> None:
        self._rows = table.plain_rows()
        self._texts = [_Texts(table.header, kind) for kind in FdeType]

    def rows(self, number: int) -> tuple[list[int], list[str]] | None:
        """Return start offsets (in bytes) and texts of a function's rows; ``None``: it is not plain, or malformed."""
        return self._rows.read(number, self._texts)


class _Texts(dict[bytes, str]):
    """The texts for the rows of one header and type of FDE, made once for equal rows."""

    def __init__(self, header: Header, kind: FdeType) -> None:
        super().__init__()
        self._header = header
        self._kind = kind
        self._rules = RuleTable(header, kind)

    def __missing__(self, row: bytes) -> str:
        self._rules[row]  # raises FormatError if the row has no meaning, as a lookup of one address does
        text = self[row] = _row(cells(self._header, self._kind, row))
        return text


def _row(cells: Cells) -> str:
    return str(cells) if cells.ra_undefined else f"CFA {cells.cfa}, FP {cells.fp}, RA {cells.ra}"
