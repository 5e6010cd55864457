"""Compares the functions of a file, as SFrame and as DWARF CFI describe them, where the rules of either change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter

from sframe_unwind.address import Range, gaps, merged, overlap
from sframe_unwind.cfi.records import Fde
from sframe_unwind.cfi.rules import CfiRules, Said, differences
from sframe_unwind.elf import ElfBinary
from sframe_unwind.elf.cfi import CfiProblem
from sframe_unwind.errors import FormatError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.sframe import table
from sframe_unwind.sframe.constants import NEWEST
from sframe_unwind.sframe.listing import Malformed, listed_functions, unrolled
from sframe_unwind.sframe.section import Section, highest_version
from sframe_unwind.translation.changes import Rules, at_changes
from sframe_unwind.unwind_rule import UnwindRule
from sframe_unwind.verify.coverage import described_ranges
from sframe_unwind.verify.reasons import reason, reason_unread
from sframe_unwind.verify.rules import words
from sframe_unwind.verify.terms import Gap
from sframe_unwind.verify.verdict import Disagreement, Function, Line, Outcome
from sframe_unwind.workers import Progress

_SHOWN_GAPS = 8
"""Maximum number of ranges in the reason for one function; JSON has all."""
_PROGRESS_STEP = 256
"""Number of functions between two reports of the progress."""


class Compared(NamedTuple):
    """The rules of both tables at one address."""

    pc: int
    sframe: UnwindRule
    dwarf: Said


class Comparison:
    """Compares the SFrame of a file with its DWARF CFI; the attributes have the results.

    :param sections: the SFrame.
    :param only: the functions to compare; ``None``: all.
    :param progress: called with the number of functions that have been compared, and with their total number.
    :param all_names: whether functions that agree have their names, too, which takes a tenth of the time.
    :raises FormatError: the CFI is malformed as a whole, or too many functions claim the same rows or code.
    """

    def __init__(
        self,
        binary: ElfBinary,
        sections: list[Section],
        progress: Progress | None = None,
        only: Sequence[Range] | None = None,
        all_names: bool = True,
    ) -> None:
        self._binary = binary
        self._all_names = all_names
        self._only = None if only is None else merged(only)
        self._arch = binary.arch
        self._cfi = cfi = binary.cfi
        self._layout = layout = binary.layout
        self._rules = CfiRules(self._arch)
        self._version = highest_version(sections) or NEWEST
        self.addresses_compared = 0
        self.disagreements: list[Disagreement] = []
        self.disagreeing: list[int] = []
        """The address of each disagreement."""
        self._malformed: list[Malformed] = []
        self._ranges: list[Range] = []
        described = self._described(sections)
        for part in (part for section in sections for part in section.tables):
            for known in part.rules.values():
                self._rules.share(known.values())
        by_cfi = cfi.ranges()
        by_sframe = [(one.start, one.end) for one in described]
        by_sframe += [(one.start, one.end) for one in self._malformed]
        binary.check_extent("SFrame", sum(end - start for start, end in by_sframe))
        binary.check_extent("DWARF CFI", sum(end - start for start, end in by_cfi))
        covered = merged(by_sframe)
        functions = []
        for number, function in enumerate(described):
            functions.append((function.start, self._compare(function)))
            if progress is not None and not number % _PROGRESS_STEP:
                progress(number, len(described))
        functions += [
            (one.start, self._function((one.start, one.end), Outcome.NOT_COMPARED, one.reason))
            for one in self._malformed
        ]
        # Most functions have the same range on both sides.  These ranges need no search among the merged ones, here and
        # in :meth:`_in_part`.
        only_cfi = set(by_cfi).difference(by_sframe)
        functions += [
            (key[0], self._dwarf_only(key))
            for key in sorted(only_cfi)
            if self._is_wanted(*key) and not overlap([key], covered)
        ]
        functions += self._in_part(described, covered, by_cfi)
        self.functions = tuple(function for _, function in sorted(functions, key=itemgetter(0)))
        both = merged([*covered, *only_cfi]) if only_cfi else covered
        self.not_described = sum(end - start for start, end in layout.code) - overlap(layout.code, both)

    def _described(self, sections: list[Section]) -> list[table.Function]:
        """Return the functions for which SFrame has rows, by address; record those that cannot be decoded."""
        listed = [one for one in listed_functions(sections, self._malformed) if one.fde.size and one.fde.num_rows]
        if self._layout.relocatable:
            # For code that `ld -r` discards, the FDE stays, without the relocation that gave it an address in code.
            listed = [one for one in listed if self._layout.code_end(one.start) is not None]
            self._malformed = [one for one in self._malformed if self._layout.code_end(one.start) is not None]
        if self._only is not None:
            listed = [one for one in listed if self._is_wanted(one.start, one.end)]
            self._malformed = [one for one in self._malformed if self._is_wanted(one.start, one.end)]
        described = []
        for function in sorted(listed, key=lambda function: function.start):
            try:
                self._ranges += described_ranges(function)
            except FormatError as error:
                self._malformed.append(Malformed(function.start, function.end, str(error)))
            else:
                described.append(function)
        return described

    def _is_wanted(self, start: int, end: int) -> bool:
        return self._only is None or bool(overlap([(start, end)], self._only))

    def _compare(self, function: table.Function) -> Function:
        key = start, end = function.start, function.end
        differing: list[Compared] = []
        found = self._cfi.fdes(start, end)
        for described in found:
            try:
                dwarf = self._rules.of(described, start, end)
            except FormatError as error:
                return self._function(key, Outcome.NOT_COMPARED, str(error))
            if described.start == start and described.end == end and unrolled(function, start, end) == dwarf:
                self.addresses_compared += len(dwarf[0])
            else:
                differing += self._differing(function, described, dwarf)
        if not found:
            return self._function(key, Outcome.SFRAME_ONLY, "no CFI")
        if not differing:
            return self._function(key, Outcome.AGREES)
        return self._function(key, Outcome.DISAGREES, lines=tuple(map(self._line, differing)))

    def _differing(self, function: table.Function, described: Fde, dwarf: Rules) -> list[Compared]:
        """Return both rules at each address at which either changes, if they differ at one of them.

        :param dwarf: the rows that ``described`` has.
        """
        low, high = max(function.start, described.start), min(function.end, described.end)
        sframe = unrolled(function, low, high)
        changes = at_changes(
            one=sframe, other=dwarf, one_start=function.start, other_start=described.start, low=low, high=high
        )
        # Only addresses for which both tables have a rule are compared.
        compared = [
            Compared(pc, rule, said) for pc, rule, said in changes if isinstance(rule, UnwindRule) and said is not None
        ]
        self.addresses_compared += len(compared)
        differ = any(rule != said and differences(rule, said, self._arch) for _, rule, said in compared)
        return compared if differ else []

    def _line(self, compared: Compared) -> Line:
        pc, rule, said = compared
        where = self._layout.spot(pc)
        line = Line(where, words(rule, self._arch), words(said, self._arch), differences(rule, said, self._arch))
        for what in line.differs:
            texts = getattr(line.sframe, what), getattr(line.dwarf, what)
            self.disagreements.append(Disagreement(where, self._name(pc), what, *texts))
            self.disagreeing.append(pc)
        return line

    def _dwarf_only(self, key: Range) -> Function:
        described = self._cfi.functions(*key)[0]
        if isinstance(described, CfiProblem):
            if why := reason_unread(described, self._arch):
                return self._function(key, Outcome.NOT_EXPRESSIBLE, why)
            return self._function(key, Outcome.NOT_COMPARED, described.why)
        why = reason(described, self._arch, self._version)
        return self._function(key, Outcome.NOT_EXPRESSIBLE if why else Outcome.DWARF_ONLY, why)

    def _in_part(
        self, described: list[table.Function], covered: list[Range], by_cfi: list[Range]
    ) -> Iterator[tuple[int, Function]]:
        """Yield the ranges that one side leaves out of each function of the other, with the function's first address.

        :param covered: the merged ranges of the functions that SFrame describes.
        :param by_cfi: the ranges of those that DWARF CFI describes.
        """
        by_sframe = [*self._ranges, *((one.start, one.end) for one in self._malformed)]
        if others := set(by_cfi).difference(by_sframe):
            merged_ranges = merged(by_sframe)
            for key in sorted(others):
                # Most functions have no gaps, so these are looked for first.
                if (missing := gaps(key, merged_ranges)) and overlap([key], covered):
                    yield missing[0][0], self._left_out("SFrame", key, missing)
        if others := {(function.start, function.end) for function in described}.difference(by_cfi):
            merged_ranges = merged(by_cfi)
            for key in sorted(others):
                # One entry may describe several functions and the padding between them.
                missing = [gap for gap in gaps(key, merged_ranges) if not self._binary.padding.fills(*gap)]
                if missing and overlap([key], merged_ranges):
                    yield missing[0][0], self._left_out("DWARF CFI", key, missing)

    def _left_out(self, by: str, function: Range, missing: list[Range]) -> Function:
        """Return the parts of a function that one side leaves out.

        :param by: the side that leaves them out.
        """
        left_out = tuple(Gap(self._layout.spot(start), end - start) for start, end in missing)
        start, end = function
        why = f"{by} has nothing for {', '.join(map(str, left_out[:_SHOWN_GAPS]))}"
        if len(left_out) > _SHOWN_GAPS:
            why += f" and {len(left_out) - _SHOWN_GAPS} more ranges"
        why += f" of {Gap(self._layout.spot(start), end - start)}"
        first = missing[0][0]
        size = sum(gap.size for gap in left_out)
        return Function(
            spot=self._layout.spot(first),
            size=size,
            name=self._name(first),
            outcome=Outcome.IN_PART,
            reason=why,
            lines=(),
            gaps=left_out,
        )

    def _function(self, key: Range, outcome: Outcome, why: str = "", lines: tuple[Line, ...] = ()) -> Function:
        start, end = key
        name = self._name(start) if self._all_names or outcome is not Outcome.AGREES else ""
        fields = self._layout.spot(start), end - start, name, outcome, why, lines, ()
        return tuple.__new__(Function, fields)  # a quarter of the time of calling the class with keywords

    def _name(self, pc: int) -> str:
        return self._binary.function_name(pc)
