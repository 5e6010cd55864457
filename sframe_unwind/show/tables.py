"""The rules of both tables of a file for a range of code, and their differences."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from typing import Union

from sframe_unwind.address import Range
from sframe_unwind.cfi.records import CfiFunction
from sframe_unwind.cfi.rules import CfiRules, NoRule, differences
from sframe_unwind.code.image.ranges import CodeRange
from sframe_unwind.code.judge.judgement import ScaledRule, SumRule
from sframe_unwind.elf import ElfBinary
from sframe_unwind.elf.cfi import CfiProblem
from sframe_unwind.errors import FormatError, NoSFrameError, UnsupportedExpressionError, counted
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.report.frame_picture import PlacedRule
from sframe_unwind.report.listing import DWARF, SFRAME
from sframe_unwind.report.notation import attributes
from sframe_unwind.sframe.constants import PcType
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule
from sframe_unwind.verify.code_tables import SFrameTable

Rule = Union[UnwindRule, NoRule]
"""A rule, or the reason why a row has none."""


class Column(NamedTuple):
    """The rules of one table for a range of code: each applies from its address to the next one."""

    starts: list[int]
    """Addresses, ascending."""
    rules: list[Rule | None]
    """``None``: there is no row from there on."""
    data: str
    """The source of the rules, or the reason why there are none."""

    def at(self, pc: int) -> Rule | None:
        """Return the rule for an address; ``None``: there is none."""
        number = bisect_right(self.starts, pc) - 1
        return self.rules[number] if number >= 0 else None


class Tables:
    """The SFrame and the DWARF CFI of a file.

    :raises FormatError: SFrame or CFI is malformed as a whole.
    """

    def __init__(self, binary: ElfBinary) -> None:
        self._binary = binary
        self.arch = binary.arch
        self.sections = []
        self._no_sframe = ""
        try:
            self.sections = binary.sframe
        except NoSFrameError as error:
            self._no_sframe = str(error).partition(": ")[2] or str(error)
        self.sframe = SFrameTable(self.sections) if self.sections else None
        self._rules = CfiRules(self.arch)

    def columns(self, part: CodeRange) -> tuple[Column, Column]:
        """Return the rules of SFrame and of DWARF CFI for a range of code."""
        return self._sframe_column(part), self._cfi_column(part)

    def _sframe_column(self, part: CodeRange) -> Column:
        if self.sframe is None:
            return Column([], [], self._no_sframe)
        entries = self.sframe.entries(part)
        rows = self.sframe.rows(part)
        rules = [NoRule(rule) if isinstance(rule, str) else _plain(rule) for rule in rows.rules]
        if not entries:
            return Column(rows.starts, rules, "no FDE")
        texts = []
        for function in entries:
            fde = function.fde
            repeated = f", repeats every {counted(fde.repetition_size, 'byte')}" if fde.pc_type is PcType.MASK else ""
            texts.append(f"FDE {function.number} with {counted(fde.num_rows, 'row')}{attributes(fde)}{repeated}")
        return Column(rows.starts, rules, "; ".join(texts))

    def _cfi_column(self, part: CodeRange) -> Column:
        starts: list[int] = []
        rules: list[Rule | None] = []
        texts: list[str] = []
        for entry in self._binary.cfi.functions(*part):
            low, high = max(entry.start, part.start), min(entry.end, part.end)
            while starts and starts[-1] >= low:  # the end of the entry before, or an entry that overlaps it
                starts.pop()
                rules.pop()
            try:
                offsets, said = self._decoded(entry, part)
            except FormatError as error:
                offsets, said = [low - entry.start], [NoRule(f"malformed: {error}")]
            found = Column([entry.start + offset for offset in offsets], list(said), "")
            starts += [low, *(at for at in found.starts if low < at < high), high]
            rules += [found.at(low), *(rule for at, rule in zip(found.starts, said) if low < at < high), None]
            texts.append(_cfi_text(entry))
        return Column(starts, rules, "; ".join(texts) or "no FDE")

    def _decoded(self, entry: CfiFunction | CfiProblem, part: CodeRange) -> tuple[list[int], list[Rule]]:
        if isinstance(entry, CfiProblem):
            return [0], [NoRule(f"not decoded: {entry.why}")]
        return self._rules.rows(entry, *part)

    def placed(self, part: CodeRange, pc: int) -> list[PlacedRule]:
        """Return the rules of both tables for an address, with the registers that CFI has, for a picture."""
        sframe, dwarf = (column.at(pc) for column in self.columns(part))
        found = []
        if isinstance(sframe, UnwindRule):
            found.append(PlacedRule(SFRAME, sframe))
        if isinstance(dwarf, UnwindRule):
            found.append(PlacedRule(DWARF, dwarf, self.others(pc)))
        return found

    def others(self, pc: int) -> tuple[tuple[int, RegisterRule], ...]:
        """Return DWARF numbers and places of the registers that CFI locates at an address, other than SP and FP."""
        for entry in self._binary.cfi.functions(pc, pc + 1):
            if isinstance(entry, CfiFunction):
                row = entry.rows[bisect_right(entry.offsets, pc - entry.start) - 1]
                with suppress(FormatError, UnsupportedExpressionError):
                    return row.rule(self.arch, entry.cie.return_column, pc).others or ()
        return ()

    def ranges(self) -> Iterator[Range]:
        """Yield the extent of each entry of both tables."""
        if self.sframe is not None:
            yield from self.sframe.ranges()
        yield from self._binary.cfi.ranges()

    def differing(self, sframe: Rule | None, dwarf: Rule | None) -> tuple[str, ...]:
        """Return the values in which the rules of both tables differ; none if a table has no rule."""
        if not isinstance(sframe, UnwindRule) or dwarf is None or sframe is dwarf:
            return ()
        return differences(sframe, dwarf, self.arch)


def _plain(rule: object) -> Rule | None:
    """Return a rule of SFrame as an :class:`UnwindRule`: other kinds of rules come only from DWARF."""
    assert not isinstance(rule, (SumRule, ScaledRule, str))
    return rule  # type: ignore[return-value]


def _cfi_text(entry: CfiFunction | CfiProblem) -> str:
    if isinstance(entry, CfiProblem):
        return f"FDE that cannot be decoded: {entry.why}"
    return f"FDE with {counted(len(entry.rows), 'row')}" + (", signal trampoline" if entry.cie.signal else "")
