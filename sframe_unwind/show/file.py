"""Makes the listings of a file's functions."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from sframe_unwind.address import find_range
from sframe_unwind.cfi.rules import NoRule
from sframe_unwind.code.image.ranges import CodeRange
from sframe_unwind.elf import ElfBinary, SectionHeader
from sframe_unwind.elf.constants import SHF_EXECINSTR
from sframe_unwind.elf.symbols import Symbol, Symbols, symbol_text
from sframe_unwind.errors import FileError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.report.demangle import demangle
from sframe_unwind.report.frame_picture import Picture, pictures
from sframe_unwind.report.listing import (
    CODE,
    DIFFERS,
    DWARF,
    ODD,
    PLAIN,
    SFRAME,
    Extra,
    Listing,
    Note,
    Part,
    Row,
    Run,
    SourceLine,
)
from sframe_unwind.report.rule_cells import VALUES, RuleCells, cell, difference, rule_cells
from sframe_unwind.show.functions import Functions
from sframe_unwind.show.instructions import Disassembler, Instruction, Instructions
from sframe_unwind.show.relocations import CodeFields
from sframe_unwind.show.source_lines import SourceLines
from sframe_unwind.show.tables import Column, Rule, Tables
from sframe_unwind.source.debug_info import Place
from sframe_unwind.unwind_rule import UnwindRule

if TYPE_CHECKING:
    # The interpreter of machine code is many modules; without the column of the code, they are not needed.
    from sframe_unwind.show.by_code import CodeColumns, FunctionByCode
    from sframe_unwind.show.code_rows import FunctionRows

_TITLES = (SFRAME, DWARF)
"""The titles of the columns of both tables."""
_CODE_BIT = 4


class Options(NamedTuple):
    """The optional parts of listings."""

    source: SourceLines | None = None
    """``None``: no lines of source."""
    code: CodeColumns | None = None
    """``None``: no column of the machine code."""


class ShownFile:
    """An open file whose functions are shown.

    :param symbols: the symbols of the separate debug file; ``None``: those of the file itself.
    :raises FormatError: SFrame or CFI is malformed as a whole.
    """

    def __init__(self, binary: ElfBinary, symbols: Symbols | None = None) -> None:
        self.binary = binary
        self.tables = Tables(binary)
        self.functions = Functions(binary, self.tables, symbols)
        self.relative = binary.layout.relocatable
        self.disassembler = Disassembler(binary.arch, self._name_shown)
        self.fields = CodeFields(binary)
        self._code = sorted(_code(binary, section) for section in binary.sections if section.flags & SHF_EXECINSTR)
        self._cells: dict[Rule, RuleCells] = {}
        self._pairs: dict[tuple[Rule | None, Rule | None], _Pair] = {}
        self._whole: tuple[int, int, Symbol | None] = (0, 0, None)
        """Start and end of the function that is listed, and the symbol that covers all of it."""
        self._names: dict[int, str] = {}
        """The names of addresses to which instructions refer, outside of their functions: many call the same one."""
        self._offset = 0
        """The number that is added to an address as tools show it, to get the address in the layout."""

    def listing(self, part: CodeRange, options: Options = Options()) -> Listing:  # noqa: B008  # it cannot change
        """Return the listing of a function.

        :raises FileError: its code is not in the file.
        """
        code = find_range(self._code, part.start)
        if code is None:
            raise FileError(f"{self.functions.shown(part.start)} is in no section with code")
        self._offset = code.start if self.relative else 0
        self._whole = self.functions.whole(part)
        sframe, dwarf = self.tables.columns(part)
        by_code = options.code.of(part) if options.code is not None else None
        spot = self.binary.layout.spot(part.start)
        return Listing(
            name=demangle(self.functions.name(part.start)),
            section=spot.section,
            start=spot.address,
            size=part.end - part.start,
            relative=self.relative,
            columns=(SFRAME, DWARF) + ((CODE,) if by_code is not None else ()),
            data=(sframe.data, dwarf.data) + ((by_code.data,) if by_code is not None else ()),
            parts=list(_Rows(self, part, code, columns=(sframe, dwarf), by_code=by_code, source=options.source).all()),
        )

    def pictures(self, address: int) -> list[Picture]:
        """Return the pictures of the frame before an instruction."""
        part = self.functions.around(address)
        return pictures(self.tables.placed(part, address), self.tables.arch)

    def others(self, address: int) -> list[tuple[str, str]]:
        """Return the names of further registers that DWARF CFI locates at an address, and their places."""
        arch = self.tables.arch
        return [(arch.register_name(number), cell(place, arch)) for number, place in self.tables.others(address)]

    def pair(self, sframe: Rule | None, dwarf: Rule | None) -> _Pair:
        """Return what is shown of the rules of both tables; most functions have the same ones."""
        found = self._pairs.get((sframe, dwarf))
        if found is None:
            found = _Pair((self._columns_of(sframe), self._columns_of(dwarf)), self.tables.differing(sframe, dwarf))
            self._pairs[sframe, dwarf] = found
        return found

    def _columns_of(self, rule: Rule | None) -> RuleCells | None:
        """Return the columns of a rule; ``None``: there is none."""
        if rule is None:
            return None
        found = self._cells.get(rule)
        if found is None:
            found = self._cells[rule] = rule_cells(rule, self.tables.arch)
        return found

    def shown(self, address: int) -> int:
        """Return an address as the listing shows it."""
        return self.binary.layout.spot(address).address if self.relative else address

    def _name_shown(self, address: int) -> str:
        at = address + self._offset
        start, end, symbol = self._whole
        if symbol is not None and start <= at < end:  # so most jumps
            return symbol_text(symbol, at - symbol.address)
        name = self._names.get(at)
        if name is None:
            name = self._names[at] = self.functions.name(at)
        return name


class _Pair(NamedTuple):
    """The rules of both tables for one instruction, as they are shown."""

    cells: tuple[RuleCells | None, RuleCells | None]
    differs: tuple[str, ...]
    """The values, of :data:`VALUES`, in which the tables differ."""


class _Code(NamedTuple):
    """The contents of a section with code."""

    start: int
    end: int
    number: int
    contents: bytes

    def part(self, start: int, end: int) -> bytes:
        return self.contents[start - self.start : end - self.start]


def _code(binary: ElfBinary, section: SectionHeader) -> _Code:
    start = binary.layout.addresses[section.number]
    contents = binary.contents(section)
    return _Code(start, start + len(contents), section.number, contents)


class _Rows:
    """Makes the rows of one listing.

    :param code: the section with the function.
    """

    def __init__(
        self,
        file: ShownFile,
        part: CodeRange,
        code: _Code,
        columns: Sequence[Column],
        by_code: FunctionByCode | FunctionRows | None,
        source: SourceLines | None,
    ) -> None:
        self._file = file
        self._part = part
        self._code = code
        self._columns = columns
        self._by_code = by_code
        self._source = source
        self._base = base = code.start if file.relative else 0
        """The address from which the addresses of instructions count."""
        self._rule_at = [dict(zip(column.starts, column.rules)) for column in columns]
        """For each column, the rules by the addresses at which they begin."""
        self._changes = _changes(part, self._rule_at)
        self._labels: Mapping[int, tuple[str, ...]] = file.functions.labels(part)
        self._relocations = (
            file.fields.between(code.number, part.start - base, part.end - base) if file.relative else []
        )
        self._places: tuple[Place, ...] = ()
        self._rules: list[Rule | None] = [None] * len(columns)
        self._cells: tuple[RuleCells | None, ...] = (None,) * (len(columns) + (by_code is not None))
        self._differs: tuple[str, ...] = ()
        self._has_rows = [column.rules.count(None) < len(column.rules) for column in columns]

    def all(self) -> Iterator[Part]:
        """Yield the rows; those of instructions at which nothing changes are in runs."""
        base, changes = self._base, self._changes
        found = self._instructions()
        done = 0
        for point in sorted({*changes, *self._labels, *(offset + base for offset, _ in self._relocations)}):
            number = bisect_right(found.addresses, point - base) - 1
            if number < 0 or point - base >= found.addresses[number] + found.sizes[number]:
                continue  # the disassembler leaves out bytes at the end that are too few for an instruction
            if number >= done:
                yield from self._between(found, done, number)
                yield self._row(found.at(number))
                done = number + 1
            if point in changes and point - base > found.addresses[number]:
                yield self._row(Instruction(point - base, b"", ""))
        yield from self._between(found, done, len(found.addresses))

    def _between(self, found: Instructions, first: int, end: int) -> Iterator[Part]:
        """Yield the rows of instructions where no row begins; they have more to show if the tables differ there."""
        if self._source is not None or self._by_code is not None or self._differs:
            yield from (self._row(found.at(number)) for number in range(first, end))
        elif first < end:
            inside = slice(first, end)
            addresses, sizes, texts = found.addresses[inside], found.sizes[inside], found.texts[inside]
            code = found.code[addresses[0] - found.start : addresses[-1] + sizes[-1] - found.start]
            yield Run(addresses, sizes, texts, code, self._cells)

    def _instructions(self) -> Instructions:
        """Return the instructions; without a disassembler, pieces of bytes that end where a row begins."""
        (start, end), base = self._part, self._base
        cuts = () if self._file.disassembler.has_texts else sorted(at - base for at in self._changes if at > start)
        return self._file.disassembler.instructions(self._code.part(start, end), start - base, cuts)

    def _row(self, instruction: Instruction) -> Row:
        at = instruction.address + self._base
        begins = self._changes.get(at, 0)
        notes: list[Note] = []
        if begins:
            notes += self._begun(at)
        if self._by_code is not None and instruction.raw:
            begins |= self._judged(at, notes)
        if not instruction.raw:
            notes.append(Note(ODD, "a row begins inside the instruction"))
        lines: tuple[SourceLine, ...] = ()
        if self._source is not None and instruction.raw:
            self._places, lines = self._source.change(at, self._places)
        labels = self._labels.get(at, ())
        relocations = self._relocations_in(instruction) if self._relocations else ()
        differs = self._differs
        refuted = self._by_code.refuted(at) if self._by_code is not None else ()
        if refuted:
            wrong = {one.what for one in refuted}
            differs = tuple(what for what in VALUES if what in differs or what in wrong)
        extra = PLAIN
        if notes or lines or labels or relocations or differs:
            extra = Extra(labels, lines, relocations, tuple(notes), differs=differs, refuted=refuted)
        return Row(at - self._base, instruction.raw, instruction.text, self._cells, begins=begins, extra=extra)

    def _relocations_in(self, instruction: Instruction) -> tuple[str, ...]:
        """Return the relocations of the fields of an instruction."""
        start, end = instruction.address, instruction.address + len(instruction.raw)
        first, last = (bisect_left(self._relocations, (at,)) for at in (start, end))
        return tuple(text for _, text in self._relocations[first:last])

    def _begun(self, at: int) -> list[Note]:
        """Take the rules of the rows that begin at an address; return the notes about them."""
        before = self._rules
        self._rules = [rules.get(at, rule) for rules, rule in zip(self._rule_at, before)]
        cells, self._differs = self._file.pair(*self._rules)
        self._cells = (*cells, *self._cells[len(self._columns) :])
        notes = [Note(DIFFERS, self._difference(what, at)) for what in self._differs]
        for number, rule in enumerate(self._rules):
            if rule is None:
                is_end = self._has_rows[number] and (before[number] is not None or at == self._part.start)
                if is_end and self._rules[1 - number] is not None:
                    notes.append(Note(ODD, f"{_TITLES[number]} has no row from here on"))
            elif rule is not before[number] and isinstance(rule, NoRule):
                notes.append(Note(ODD, f"{_TITLES[number]}: {rule.why}"))
        return notes

    def _difference(self, what: str, at: int) -> str:
        sframe, dwarf = self._rules
        assert isinstance(sframe, UnwindRule)
        assert dwarf is not None
        text = difference(what, sframe, dwarf, self._file.tables.arch)
        side = self._by_code.side(at, what) if self._by_code is not None else ""
        return f"{text}; {side}" if side else text

    def _judged(self, at: int, notes: list[Note]) -> int:
        """Take the rule of the code at an instruction; return its bit if the rule changes."""
        assert self._by_code is not None
        notes += self._by_code.notes(at)
        cells = self._by_code.cells(at, self._cells[: len(self._columns)])
        if cells is None or cells == self._cells[-1]:
            return 0
        self._cells = (*self._cells[:-1], cells)
        return _CODE_BIT


def _changes(part: CodeRange, columns: Sequence[Mapping[int, object]]) -> dict[int, int]:
    """Return the addresses at which rows begin, each with a bit for each column whose row begins there."""
    start, end = part
    found: dict[int, int] = {}
    for bit, column in enumerate(columns):
        for at in column:
            if start <= at < end:
                found[at] = found.get(at, 0) | 1 << bit
    return found
