"""Makes the column of the machine code: the rules that the code proves or refutes at each instruction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from sframe_unwind.address import merged, overlap
from sframe_unwind.code.image.ranges import CodeRange
from sframe_unwind.code.judge.findings import DWARF, SFRAME, CodeVerdict, Finding, Unknown, counted
from sframe_unwind.code.judge.judgement import Judgement, Judgements
from sframe_unwind.code.judge.proved_cells import proved_cells
from sframe_unwind.code.judge.whole_file import check_functions
from sframe_unwind.code.rows.at_address import CodeRows
from sframe_unwind.elf import ElfBinary
from sframe_unwind.errors import counted as number_of
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.report import listing
from sframe_unwind.report.listing import UNKNOWN, WRONG, Note, Refuted
from sframe_unwind.report.rule_cells import VALUES, RuleCells
from sframe_unwind.show.code_rows import FunctionRows, function_rows
from sframe_unwind.show.functions import Functions
from sframe_unwind.show.tables import Tables
from sframe_unwind.verify.code_check import checker_of, side_of
from sframe_unwind.verify.needed import needed
from sframe_unwind.verify.plan import Plan
from sframe_unwind.verify.terms import SIDES

_NOTHING = CodeVerdict(functions=(), instructions=0, counts={}, findings=(), unknown=(), wanted={}, given_up=0)
_TABLES = {SFRAME: listing.SFRAME, DWARF: listing.DWARF}


class FunctionByCode(NamedTuple):
    """The verdicts of the code on the tables of one function."""

    binary: ElfBinary
    data: str
    """The verdicts in numbers."""
    verdicts: Mapping[str, Mapping[int, Judgements]]
    """By table and address."""
    findings: Mapping[int, Sequence[Finding]]
    """By the address from which on a rule is wrong."""
    unknown: Mapping[int, Sequence[Unknown]]
    """By the address from which on it is unknown whether a rule is right."""

    def cells(self, at: int, by_table: Sequence[RuleCells | None]) -> RuleCells | None:
        """Return the rule of the code at an instruction: for each value, the rule of a table that the code proves.

        ``None``: there is no verdict, as in padding.

        :param by_table: the rules of SFrame and of DWARF CFI there.
        """
        return proved_cells(
            [
                (cells, self.verdicts[table][at])
                for table, cells in zip(_TABLES, by_table)
                if cells is not None and at in self.verdicts.get(table, ())
            ]
        )

    def refuted(self, at: int) -> tuple[Refuted, ...]:
        """Return the values that the code refutes at an instruction, in either table."""
        return tuple(
            Refuted(title, what)
            for table, title in _TABLES.items()
            if (found := self.verdicts.get(table, {}).get(at)) is not None and found.worst is Judgement.WRONG
            for what in VALUES
            if getattr(found, what) is Judgement.WRONG
        )

    def side(self, at: int, what: str) -> str:
        """Return with which of the tables the code agrees about a value, in words."""
        return SIDES[side_of(at, what, self.verdicts, (SFRAME, DWARF))]

    def notes(self, at: int) -> Iterator[Note]:
        """Yield the notes about the rules from an instruction on."""
        grouped: dict[tuple[str, str, str], list[Finding]] = {}
        for finding in self.findings.get(at, ()):
            grouped.setdefault((finding.what, finding.rule, finding.code), []).append(finding)
        for (_, rule, code), found in grouped.items():
            tables = [_TABLES[finding.table] for finding in found]
            says = "say" if len(tables) > 1 else "says"
            text = f"by the code, {code}{self._since(found[0])}; {' and '.join(tables)} {says} {rule}"
            assumes = found[0].assumes
            yield Note(UNKNOWN if assumes else WRONG, text + (f" (assumed: {', '.join(assumes)})" if assumes else ""))
        why: dict[tuple[str, int], list[str]] = {}
        for one in self.unknown.get(at, ()):
            why.setdefault((f"{one.why}{self._since(one)}", one.instructions), []).append(_TABLES[one.table])
        for (reason, instructions), tables in why.items():
            what = f"the code does not tell whether {' and '.join(tables)} {'is' if len(tables) == 1 else 'are'} right"
            yield Note(UNKNOWN, f"{what} for {number_of(instructions, 'instruction')}: {reason}")

    def _since(self, one: Finding | Unknown) -> str:
        return "" if one.origin is None else f" since `{one.instruction}` at {self.binary.layout.spot(one.origin)}"


class CodeColumns:
    """Checks functions of a file against their code, and finds the rows of those that no table describes.

    :param shown: the extents of the functions to show; ``None``: all.
    :param jobs: number of processes.
    :raises SFrameError: the package that decodes the code is not installed.
    """

    def __init__(
        self, binary: ElfBinary, tables: Tables, functions: Functions, shown: Sequence[CodeRange] | None, jobs: int = 1
    ) -> None:
        self._binary = binary
        self._rows = CodeRows(binary.name, binary.symbols)
        self._described = merged(tables.ranges())
        self._found = _NOTHING
        if self._described:
            self._check(tables, functions, shown, jobs)
        self._findings = _by_address(self._found.findings)
        self._unknown = _by_address(self._found.unknown)

    def _check(self, tables: Tables, functions: Functions, shown: Sequence[CodeRange] | None, jobs: int) -> None:
        binary = self._binary
        wanted = frozenset(at for part in shown or functions.all() for at in range(*part))
        checker = checker_of(binary, tables.sframe, Plan(why_unknown=True), wanted)
        only = None if shown is None else needed(checker, binary, shown)
        self._found = check_functions(checker, jobs, only=only)

    def of(self, part: CodeRange) -> FunctionByCode | FunctionRows:
        """Return the verdicts on a function, or its rows if no table describes it."""
        if not overlap([part], self._described):
            return function_rows(self._rows, self._binary.arch, part)
        return FunctionByCode(
            binary=self._binary,
            data=_counts(self._found, part),
            verdicts=self._found.wanted,
            findings=self._findings,
            unknown=self._unknown,
        )


def _by_address(found: Iterable[Finding] | Iterable[Unknown]) -> dict[int, list]:  # type: ignore[type-arg]
    result: dict[int, list] = {}  # type: ignore[type-arg]
    for one in found:
        if one.table in _TABLES:
            result.setdefault(one.address, []).append(one)
    return result


def _counts(found: CodeVerdict, part: CodeRange) -> str:
    """Return the verdicts on a function in numbers of instructions."""
    texts = []
    for table, title in _TABLES.items():
        verdicts = found.wanted.get(table, {})
        inside = {at: verdicts[at] for at in range(*part) if at in verdicts}
        if inside:
            counts = counted(inside)
            kinds = {"proved": counts.proved, "wrong": counts.wrong, "unknown": counts.unknown}
            texts.append(f"{title} " + ", ".join(f"{number} {kind}" for kind, number in kinds.items() if number))
    return "; ".join(texts) or "nothing to judge"
