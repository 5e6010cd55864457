"""Reports the findings of a check against machine code, with the names and addresses of the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sframe_unwind.code.judge.findings import DWARF, NONE, ORC, SFRAME, TITLES, CodeVerdict, Counts, Finding, Unknown
from sframe_unwind.code.judge.judgement import Judgement
from sframe_unwind.elf import ElfBinary
from sframe_unwind.elf.section_addresses import FileAddress
from sframe_unwind.errors import counted
from sframe_unwind.named_tuple import NamedTuple


class CodeFinding(NamedTuple):
    """A rule that the code shows to be wrong."""

    spot: FileAddress
    """Address of the first instruction at which the rule is wrong."""
    function: str
    """Name of the function and offset from its start; empty: no symbol covers the address."""
    table: str
    """``sframe``, ``dwarf`` or ``orc``."""
    what: str
    """``cfa``, ``ra`` or ``fp``."""
    rule: str
    code: str
    """The rule that the code proves, and the first instruction at which it applies."""
    assumes: tuple[str, ...]
    """The assumptions of the proof; if there are any, the finding is a warning."""

    def to_json(self) -> dict[str, Any]:
        """Return the object of ``verify --json``."""
        return {
            "address": self.spot.address,
            "section": self.spot.section,
            "function": self.function,
            "table": self.table,
            "what": self.what,
            "rule": self.rule,
            "code": self.code,
            "assumes": list(self.assumes),
        }


class CodeUnknown(NamedTuple):
    """Consecutive instructions for which it is unknown whether a table is right."""

    spot: FileAddress
    """Address of the first instruction."""
    function: str
    """Name of the function and offset from its start; empty: no symbol covers the address."""
    table: str
    """``sframe``, ``dwarf`` or ``orc``."""
    why: str
    """The reason, and the instruction from which on it is unknown, if that is known."""
    instructions: int

    def to_json(self) -> dict[str, Any]:
        """Return the object of ``verify --json``."""
        rest = {name: value for name, value in self._asdict().items() if name != "spot"}
        return {"address": self.spot.address, "section": self.spot.section, **rest}


class CodeReport(NamedTuple):
    """The findings in one file."""

    functions: int
    instructions: int
    counts: Mapping[str, Counts]
    """The counts of each table, by its name."""
    findings: tuple[CodeFinding, ...]
    unknown: tuple[CodeUnknown, ...] | None
    """``None``: the reasons were not wanted."""
    judged: Mapping[FileAddress, Judgement]
    """The worst judgement of each function, by the function's start."""
    given_up: int
    """Number of functions that were too large to check."""
    sframe_entries: int | None
    """Number of SFrame entries, if entries are not functions."""

    @property
    def is_clean(self) -> bool:
        """Whether all findings are warnings."""
        return all(finding.assumes for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return the object of ``verify --json``."""
        tables = (SFRAME, DWARF, *((ORC,) if ORC in self.counts else ()))
        counts = {table: self.counts.get(table, NONE)._asdict() for table in tables}
        findings = [finding.to_json() for finding in self.findings]
        result = {"functions": self.functions, "instructions": self.instructions, **counts, "findings": findings}
        entries = {} if self.sframe_entries is None else {"sframe_entries": self.sframe_entries}
        unknown = {} if self.unknown is None else {"unknown": [one.to_json() for one in self.unknown]}
        return {**result, **entries, **unknown}

    def lines(self, file: str) -> Iterator[str]:
        """Yield the lines that ``verify`` prints."""
        sums = [f"{TITLES[table]} {_said(counts)}" for table, counts in self.counts.items()]
        size = f"{counted(self.functions, 'function')}, {counted(self.instructions, 'instruction')}"
        yield f"{file}: code of {size}: {'; '.join(sums)}"
        if self.sframe_entries is not None:
            entries = f"the {self.sframe_entries} entries of SFrame are parts of functions, or several"
            yield f"  {entries}: functions are those of DWARF CFI and symbols"
        grouped: dict[tuple[str, ...], tuple[CodeFinding, list[str]]] = {}
        for finding in self.findings:
            key = (str(finding.spot), finding.what, finding.rule, finding.code, *finding.assumes)
            grouped.setdefault(key, (finding, []))[1].append(TITLES[finding.table])
        for finding, tables in grouped.values():
            who = " and ".join(sorted(tables, reverse=True))
            says = "say" if len(tables) > 1 else "says"
            place = finding.spot.with_name(finding.function)
            text = f"{place}: {finding.what}: the code has {finding.code}; {who} {says} {finding.rule}"
            yield f"  warning: {text} (assumed: {', '.join(finding.assumes)})" if finding.assumes else f"  {text}"
        for one in self.unknown or ():
            place, number = one.spot.with_name(one.function), counted(one.instructions, "instruction")
            yield f"  unknown: {place}: {number} ({TITLES[one.table]}): {one.why}"
        if self.given_up:
            yield f"  {counted(self.given_up, 'function')} too large to be interpreted"


def _said(counts: Counts) -> str:
    rest = f", {counts.not_examined} not examined" if counts.not_examined else ""
    return f"{counts.proved} proved, {counts.wrong} wrong, {counts.unknown} unknown{rest}"


def report(verdict: CodeVerdict, binary: ElfBinary, why_unknown: bool = False, judged: bool = True) -> CodeReport:
    """Return the verdict on a file with sections and function names in place of bare addresses.

    :param why_unknown: whether the report lists the instructions for which a table is neither proved nor wrong, with
        the reasons.
    :param judged: whether the report has the worst of each function.
    """
    return CodeReport(
        functions=len(verdict.functions),
        instructions=verdict.instructions,
        counts=verdict.counts,
        findings=tuple(_finding(finding, binary) for finding in verdict.findings),
        unknown=tuple(_unknown(one, binary) for one in verdict.unknown) if why_unknown else None,
        judged={
            binary.layout.spot(function.start): max(function.worst.values(), default=Judgement.UNKNOWN)
            for function in (verdict.functions if judged else ())
        },
        given_up=verdict.given_up,
        sframe_entries=verdict.sframe_entries,
    )


def _since(text: str, one: Finding | Unknown, binary: ElfBinary) -> str:
    return text if one.origin is None else f"{text} since `{one.instruction}` at {binary.layout.spot(one.origin)}"


def _unknown(one: Unknown, binary: ElfBinary) -> CodeUnknown:
    place = binary.layout.spot(one.address), binary.function_name(one.address)
    return CodeUnknown(*place, one.table, _since(one.why, one, binary), one.instructions)


def _finding(finding: Finding, binary: ElfBinary) -> CodeFinding:
    code = _since(finding.code, finding, binary)
    place = binary.layout.spot(finding.address), binary.function_name(finding.address)
    return CodeFinding(*place, finding.table, finding.what, finding.rule, code, finding.assumes)
