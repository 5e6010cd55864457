"""Looks up many addresses, each of which gets one line.

A lookup searches the functions and then the rows of one function, both in sorted lists; what is printed of a row is
made once, which takes a fraction of the time of explaining the rule in words.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import islice

from sframe_unwind.cli.addresses import Addresses
from sframe_unwind.elf.symbols import Symbols
from sframe_unwind.report.notation import Cells, cells, cells_of
from sframe_unwind.report.terminal import printable
from sframe_unwind.sframe.constants import FdeType, PcType
from sframe_unwind.sframe.header import Header
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import NO_FUNCTION, Match, Miss, Table

_LONGEST = len("0x\n") + 16
"""Characters of a line with an address in hexadecimal."""
_MOST = 1 << 17
"""Lines that are kept, since the addresses of a profile come again and again."""


_Known = tuple[list[int], list[str], str, int]
"""What is printed for the addresses of one function: where each row begins, in bytes from the start of the function;
the rows; name and address of the symbol that covers all of the function.  Made faster than a class's."""


class Lines:
    """The lines for addresses of one file.

    :param addresses: says how an address is shown.
    """

    def __init__(self, sections: list[Section], symbols: Symbols, addresses: Addresses) -> None:
        self._sections = sections
        self._symbols = symbols
        self._addresses = addresses
        found: list[tuple[int, int, Table, int]] = []
        for table in (table for section in sections for table in section.tables):
            starts, sizes = table.extents()
            found += ((start, start + size, table, at) for at, (start, size) in enumerate(zip(starts, sizes)) if size)
        found.sort(key=lambda one: one[:2])
        self._starts = [start for start, _, _, _ in found]
        self._ends = [end for _, end, _, _ in found]
        self._places = [(table, at) for _, _, table, at in found]
        self._known: list[_Known | None] = [None] * len(found)
        self._said: dict[str, str] = {}
        self._texts: dict[tuple[int, FdeType], _Texts] = {}
        apart = all(end <= start for end, start in zip(self._ends, self._starts[1:]))
        self._is_plain = apart and not addresses.in_sections
        """Whether no two functions overlap, and addresses are numbers."""

    def answers(self, texts: list[str], first: int) -> list[str]:
        """Return the lines for as many texts, from the first on, as are numbers of addresses in plain functions."""
        said: list[str] = []
        if not self._is_plain:
            return said
        if len(self._said) > _MOST:
            self._said.clear()
        find, add = self._said.get, said.append
        for text in islice(texts, first, None):
            line = find(text) or self._line(text)
            if line is None:
                break
            add(line)
        return said

    def _line(self, text: str) -> str | None:
        """Return the line for a text, if it is the number of an address in a plain function."""
        if len(text) > _LONGEST or text[:2] != "0x" or not (text[2:-1].isalnum() and text.isascii()):
            return None  # int takes signs, spaces, underscores and other digits, too
        try:
            address = int(text, 16)
        except ValueError:
            return None
        at = bisect_right(self._starts, address) - 1
        if at < 0 or address >= self._ends[at]:
            return None
        known = self._known[at] or self._learn(at)
        if known is None:
            return None
        offsets, rows, name, origin = known
        row = bisect_right(offsets, address - self._starts[at]) - 1
        if row < 0:
            return None
        line = self._said[text] = f"{address:#x}: {name}+{address - origin:#x}: {rows[row]}\n"
        return line

    def slowly(self, text: str) -> list[tuple[str, bool]]:
        """Return the lines for a text, each with whether SFrame covers the address; none for an empty text.

        :raises FileError: the text is no address.
        :raises FormatError: the function at the address is malformed.
        """
        return [self._single(address) for address in self._addresses.find(text)] if text else []

    def _learn(self, at: int) -> _Known | None:
        table, number = self._places[at]
        function = table.function_at(self._starts[at], number)
        known = None
        symbol = self._symbols.covering(function.start, function.end)
        if function.fde.pc_type is not PcType.MASK and function.fde.num_rows and symbol is not None:
            kind = function.fde.fde_type
            texts = self._texts.get((id(table), kind))
            if texts is None:
                texts = self._texts[id(table), kind] = _Texts(table.header, kind)
            offsets, rows = table.interpreted_rows(function, texts)
            known = offsets, rows, printable(symbol.name), symbol.address
        self._known[at] = known
        return known

    def _single(self, address: int) -> tuple[str, bool]:
        found = look_up(self._sections, address)
        name = self._symbols.name(address)
        if name is None:
            name = "(no symbol)"
        elif "+" not in name:
            name += "+0x0"
        said = f"not covered: {found.reason}" if isinstance(found, Miss) else _row(cells_of(found))
        return f"{self._addresses.shown(address)}: {printable(name)}: {said}\n", isinstance(found, Match)


def look_up(sections: list[Section], address: int) -> Match | Miss:
    """Return what the first section that has a function at an address says of it.

    :raises FormatError: the function is malformed.
    """
    found: Match | Miss = NO_FUNCTION
    for section in sections:
        found = section.lookup(address)
        if found.function:
            break
    return found


class _Texts(dict[bytes, str]):
    """What is printed of the rows of one header and kind of FDE, made once for equal rows."""

    def __init__(self, header: Header, kind: FdeType) -> None:
        super().__init__()
        self._header = header
        self._kind = kind

    def __missing__(self, row: bytes) -> str:
        text = self[row] = _row(cells(self._header, self._kind, row))
        return text


def _row(cells: Cells) -> str:
    return str(cells) if cells.ra_undefined else f"CFA {cells.cfa}, FP {cells.fp}, RA {cells.ra}"
