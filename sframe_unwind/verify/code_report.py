"""What checking one file's tables against its machine code found, in the terms of the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from sframe_unwind.code.findings import DWARF, NONE, SFRAME, TITLES, CodeVerdict, Counts, Finding
from sframe_unwind.code.judgement import Judgement
from sframe_unwind.elf import ElfBinary
from sframe_unwind.elf.section_addresses import FileAddress


class CodeFinding(NamedTuple):
    """A rule that the code shows to be wrong."""

    spot: FileAddress
    """Of the first instruction at which it is."""
    function: str
    """Name, and offset from it; empty where no symbol says."""
    table: str
    """``sframe`` or ``dwarf``."""
    what: str
    """``cfa``, ``ra`` or ``fp``."""
    rule: str
    code: str
    """What the code makes of it, and since which instruction."""
    assumes: tuple[str, ...]
    """What it rests on beside the code; if there is anything, it is a warning."""

    def to_json(self) -> dict[str, Any]:
        """Return it as ``verify --json`` has it."""
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


class CodeReport(NamedTuple):
    """What was found in one file."""

    functions: int
    instructions: int
    counts: Mapping[str, Counts]
    """By table."""
    findings: tuple[CodeFinding, ...]
    judged: Mapping[FileAddress, Judgement]
    """The worst of each function, by where it begins."""
    given_up: int
    """How many functions were too large."""

    @property
    def is_clean(self) -> bool:
        """Whether nothing is wrong."""
        return not any(counts.wrong for counts in self.counts.values())

    def to_json(self) -> dict[str, Any]:
        """Return it as ``verify --json`` has it."""
        counts = {table: self.counts.get(table, NONE)._asdict() for table in (SFRAME, DWARF)}
        findings = [finding.to_json() for finding in self.findings]
        return {"functions": self.functions, "instructions": self.instructions, **counts, "findings": findings}

    def lines(self, file: str) -> Iterator[str]:
        """Yield it as ``verify`` prints it."""
        sums = [
            f"{TITLES[table]} {counts.proved} proved, {counts.wrong} wrong, {counts.unknown} unknown"
            for table, counts in self.counts.items()
        ]
        yield f"{file}: code of {self.functions} functions, {self.instructions} instructions: {'; '.join(sums)}"
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
        if self.given_up:
            yield f"  {self.given_up} function{'s' * (self.given_up > 1)} too large to be interpreted"


def report(verdict: CodeVerdict, binary: ElfBinary) -> CodeReport:
    """Return what was found in the terms of the file."""
    return CodeReport(
        len(verdict.functions),
        verdict.instructions,
        verdict.counts,
        tuple(_finding(finding, binary) for finding in verdict.findings),
        {
            binary.layout.spot(function.start): max(function.worst.values(), default=Judgement.UNKNOWN)
            for function in verdict.functions
        },
        verdict.given_up,
    )


def _finding(finding: Finding, binary: ElfBinary) -> CodeFinding:
    code = finding.code
    if finding.origin is not None:
        code = f"{code} since `{finding.instruction}` at {binary.layout.spot(finding.origin)}"
    place = binary.layout.spot(finding.address), binary.function_name(finding.address)
    return CodeFinding(*place, finding.table, finding.what, finding.rule, code, finding.assumes)
