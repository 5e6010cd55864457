"""SFrame, DWARF CFI and ORC of a file as the tables that :mod:`sframe_unwind.code` judges."""

from __future__ import annotations

from collections.abc import Sequence

from sframe_unwind.address import RangeMap
from sframe_unwind.arch import Arch
from sframe_unwind.cfi.records import CfiFunction
from sframe_unwind.cfi.rules import CfiRules, NoRule, Said
from sframe_unwind.code.judgement import RowRule, SumRule
from sframe_unwind.code.ranges import CodeRange
from sframe_unwind.code.tables import NO_ROWS, Rows
from sframe_unwind.elf.cfi import FileCfi
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

    def _find(self, function: CodeRange) -> Function | None:
        found: tuple[Table, int] | None = self._functions.get(function.start)
        if found is None:
            return None
        try:
            return found[0].function(found[1])
        except FormatError:
            return None

    def rows(self, function: CodeRange) -> Rows:
        """Return the rules for a range of code; those of what is malformed are not known."""
        found = self._find(function)
        if found is None or not found.fde.num_rows:
            return NO_ROWS
        try:
            offsets, rules = unrolled(found, *function)
        except FormatError as error:
            return _unreadable(function, str(error))
        return _rows(found.start, found.end, offsets, rules)

    def is_signal(self, function: CodeRange) -> bool:
        """Return whether the function is marked as a signal trampoline."""
        found = self._find(function)
        return found is not None and found.fde.signal


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
        """Return the rules for a range of code; those of what is malformed or not decoded are not known."""
        entries = self._cfi.functions(function.start, function.start + 1)
        found = next((entry for entry in entries if isinstance(entry, CfiFunction)), None)
        if found is None:
            return _unreadable(function, "not decoded") if entries else NO_ROWS
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
    """The rules of ORC, which has no functions: these are the symbols of assembly and of the compiler, with sizes."""

    def __init__(self, orc: OrcTable, symbols: Symbols) -> None:
        self._orc = orc
        self._symbols = symbols

    def ranges(self) -> list[tuple[int, int]]:
        """Return start and end address of each function that ORC has a rule for at its start."""
        sized = ((symbol.address, symbol.address + symbol.size) for symbol in self._symbols if symbol.size)
        return [(start, end) for start, end in sized if any(rule is not None for rule in self._orc.rows(start, end)[1])]

    def rows(self, function: CodeRange) -> Rows:
        """Return the rules for a range of code."""
        starts, said = self._orc.rows(*function)
        return Rows([*starts, function.end], [*map(_rule, said), None])

    def is_signal(self, function: CodeRange) -> bool:
        """Return whether an interrupt frame or ``struct pt_regs`` is at the start of a function."""
        entry = self._orc.find(function.start)
        return entry is not None and entry.kind in (OrcKind.REGISTERS, OrcKind.PARTIAL_REGISTERS)


def _unreadable(function: CodeRange, why: str) -> Rows:
    return Rows([function.start, function.end], [why, None])


def _rows(start: int, end: int, offsets: list[int], said: Sequence[Said | None]) -> Rows:
    return Rows([*(start + offset for offset in offsets), end], [*map(_rule, said), None])


def _rule(said: Said | None) -> RowRule | None:
    if not isinstance(said, NoRule):
        return said
    return SumRule(said.rule, said.added) if said.rule is not None else said.why
