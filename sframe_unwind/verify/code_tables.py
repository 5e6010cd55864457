"""Presents a file's SFrame, DWARF CFI, ORC and functions as the tables that :mod:`sframe_unwind.code` judges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cached_property

from sframe_unwind.address import Range, RangeMap, gaps, merged, overlap
from sframe_unwind.arch import Arch
from sframe_unwind.cfi.records import CfiFunction
from sframe_unwind.cfi.rules import CfiRules, NoRule, Said
from sframe_unwind.code.image.ranges import CodeRange
from sframe_unwind.code.judge.judgement import RowRule, ScaledRule, SumRule
from sframe_unwind.code.judge.tables import NO_ROWS, Rows
from sframe_unwind.elf.cfi import CfiProblem, FileCfi
from sframe_unwind.elf.symbols import Symbols
from sframe_unwind.errors import FormatError
from sframe_unwind.orc import OrcKind, OrcTable
from sframe_unwind.sframe.listing import unrolled
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import Function, Table


class SFrameTable:
    """The rules of SFrame sections."""

    def __init__(self, sections: list[Section]) -> None:
        self._functions = RangeMap(
            (start, start + size, (table, number))
            for section in sections
            for table in section.tables
            for number, (start, size) in enumerate(zip(*table.extents()))
        )

    def ranges(self) -> list[tuple[int, int]]:
        """Return start and end address of each function."""
        return [(start, end) for start, end, _ in self._functions]

    @cached_property
    def is_divided(self) -> bool:
        """Whether entries may differ from functions: some share their rows, which only ``convert --compact`` does."""
        seen: set[tuple[int, int]] = set()
        for _, _, (table, number) in self._functions:
            try:
                fde = table.function(number).fde
            except FormatError:
                continue
            if fde.num_rows:
                if (id(table), fde.rows_offset) in seen:
                    return True
                seen.add((id(table), fde.rows_offset))
        return False

    def _find(self, address: int) -> Function | None:
        found: tuple[Table, int] | None = self._functions.get(address)
        if found is None:
            return None
        try:
            return found[0].function(found[1])
        except FormatError:
            return None

    def entries(self, part: CodeRange) -> list[Function]:
        """Return the functions of the section that overlap a range of code, without those that are malformed."""
        found = []
        for _, _, (table, number) in self._functions.overlapping(*part):
            with suppress(FormatError):
                found.append(table.function(number))
        return found

    def rows(self, function: CodeRange) -> Rows:
        """Return the rules for a range of code; malformed rows are returned as unknown rules.

        Several entries may describe the range, and an entry may also describe other functions.
        """
        starts = [start for start, _, _ in self._functions.overlapping(*function)]
        if len(starts) < 2:
            return self._rows(function)
        first = max(starts[0], function.start)
        cuts = sorted({first, *(start for start in starts if start > first)})
        parts = [self._rows(CodeRange(*part)) for part in zip(cuts, [*cuts[1:], function.end])]
        return Rows([at for part in parts for at in part.starts], [rule for part in parts for rule in part.rules])

    def _rows(self, part: CodeRange) -> Rows:
        """Return the rules for a range of code.  No function of the section begins inside the range."""
        found = self._find(part.start)
        if found is None or not found.fde.num_rows:
            return NO_ROWS
        try:
            offsets, rules = unrolled(found, *part)
        except FormatError as error:
            return _unreadable(part, str(error))
        return _clipped(_rows(found.start, found.end, offsets, rules), part)

    def is_signal(self, function: CodeRange) -> bool:
        """Return whether the function is marked as a signal trampoline."""
        found = self._find(function.start)
        return found is not None and found.fde.signal


def _clipped(rows: Rows, part: CodeRange) -> Rows:
    """Return the rows that apply in a part of their code."""
    if not rows.starts or (part.start <= rows.starts[0] and rows.starts[-1] <= part.end):
        return rows
    inside = [(at, rule) for at, rule in zip(rows.starts, rows.rules) if part.start < at < part.end]
    inside = [(part.start, rows.at(part.start)), *inside, (part.end, None)]
    return Rows([at for at, _ in inside], [rule for _, rule in inside])


class CfiTable:
    """The rules of DWARF CFI."""

    def __init__(self, cfi: FileCfi, arch: Arch) -> None:
        self._cfi = cfi
        self._rules = CfiRules(arch)

    def ranges(self) -> list[tuple[int, int]]:
        """Return start and end address of each FDE."""
        return self._cfi.ranges()

    def _find(self, function: CodeRange) -> CfiFunction | None:
        found = self._cfi.functions(function.start, function.start + 1)
        return next((entry for entry in found if isinstance(entry, CfiFunction)), None)

    def rows(self, function: CodeRange) -> Rows:
        """Return the rules for a range of code; malformed or undecoded rows are returned as unknown rules."""
        entries = self._cfi.functions(function.start, function.start + 1)
        found = next((entry for entry in entries if isinstance(entry, CfiFunction)), None)
        if found is None:
            why = next((f"not decoded: {entry.why}" for entry in entries if isinstance(entry, CfiProblem)), None)
            return NO_ROWS if why is None else _unreadable(function, why)
        try:
            offsets, said = self._rules.rows(found, *function)
        except FormatError as error:
            return _unreadable(function, str(error))
        return _rows(found.start, found.end, offsets, said)

    def is_signal(self, function: CodeRange) -> bool:
        """Return whether the CIE marks a signal trampoline."""
        found = self._find(function)
        return found is not None and found.cie.signal


class OrcRules:
    """The rules of ORC.  ORC has no functions: they are taken from the symbols that have sizes."""

    def __init__(self, orc: OrcTable, symbols: Symbols) -> None:
        self._orc = orc
        self._symbols = symbols

    def ranges(self) -> list[tuple[int, int]]:
        """Return start and end address of each function for whose start ORC has a rule."""
        extents = self._symbols.extents()
        return [one for one in extents if any(rule is not None for rule in self._orc.rows(*one)[1])]

    def rows(self, function: CodeRange) -> Rows:
        """Return the rules for a range of code."""
        starts, said = self._orc.rows(*function)
        return Rows([*starts, function.end], [*map(_rule, said), None])

    def is_signal(self, function: CodeRange) -> bool:
        """Return whether a function starts on an interrupt frame or ``struct pt_regs``."""
        entry = self._orc.find(function.start)
        return entry is not None and entry.kind in (OrcKind.REGISTERS, OrcKind.PARTIAL_REGISTERS)


def _unreadable(function: CodeRange, why: str) -> Rows:
    return Rows([function.start, function.end], [why, None])


def _rows(start: int, end: int, offsets: list[int], said: Sequence[Said | None]) -> Rows:
    return Rows([*(start + offset for offset in offsets), end], [*map(_rule, said), None])


def _rule(said: Said | None) -> RowRule | None:
    if not isinstance(said, NoRule):
        return said
    if said.scaled is not None:
        return ScaledRule(said.scaled, said.scales)
    return SumRule(said.rule, said.added) if said.rule is not None else said.why


def function_ranges(sframe: SFrameTable | None, cfi: Sequence[Range], symbols: Iterable[Range]) -> list[Range]:
    """Return start and end address of each function that tables describe, as far as these are known.

    Each range that CFI describes is a function.  So is each range that only SFrame describes, unless its entries are
    parts of functions (:attr:`SFrameTable.is_divided`): then only symbols tell where functions begin and end.

    :param symbols: the extents of functions according to the symbols.
    """
    functions = list(cfi)
    if sframe is None:
        return functions
    covered, left = merged(cfi), []
    for extent in sframe.ranges():
        alone = gaps(extent, covered)
        if alone == [extent] and not sframe.is_divided:
            functions.append(extent)
        else:
            left += alone
    if left:
        left = merged(left)
        functions += [extent for extent in symbols if overlap([extent], left) and not overlap([extent], covered)]
    return functions
