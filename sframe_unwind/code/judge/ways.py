"""Combines the findings in one function that is entered in several ways."""

from __future__ import annotations

from collections.abc import Iterable

from sframe_unwind.code.judge.findings import Finding, FunctionResult, Part
from sframe_unwind.code.judge.judgement import PROVED, Judgement, Judgements, not_known

_OF_ANOTHER_FRAME = not_known("another function leads here with another frame")


def joined(parts: Iterable[Part]) -> Part:
    """Return the findings for all ways into a function: at each instruction, the worst judgement counts."""
    verdicts: dict[str, dict[int, Judgements]] = {}
    findings: dict[Finding, None] = {}
    for part in parts:
        for table, found in part.verdicts.items():
            known = verdicts.setdefault(table, {})
            for pc, judgements in found.items():
                other = known.get(pc)
                known[pc] = judgements if other is None else judgements.joined(other)
        findings.update(dict.fromkeys(part.findings))
    return Part(verdicts, tuple(findings))


def contradict(others: list[Part], own: FunctionResult | None) -> bool:
    """Return whether other ways into a function prove some of its rules, and show none of its own errors, too."""
    if own is None:
        return False

    def worst(finding: Finding) -> Judgement:
        judged = (other.verdicts.get(finding.table, {}).get(finding.address) for other in others)
        return max((one.worst for one in judged if one is not None), default=Judgement.PROVED)

    proved = any(PROVED in verdicts.values() for other in others for verdicts in other.verdicts.values())
    return proved and bool(own.findings) and all(worst(finding) is Judgement.PROVED for finding in own.findings)


def reached(own: Part, others: list[Part]) -> Part:
    """Return the findings from a function's entry, without the instructions that are reached only in other ways."""

    def is_left(table: str, pc: int) -> bool:
        return pc in own.unreached and any(pc in other.verdicts.get(table, {}) for other in others)

    return own._replace(
        verdicts={
            table: {pc: judged for pc, judged in verdicts.items() if not is_left(table, pc)}
            for table, verdicts in own.verdicts.items()
        }
    )


def not_wrong(part: Part, own: Part) -> Part:
    """Return the findings of one way into a function, without errors where its entry proves the rows right.

    One row cannot be right for two frames.  If a function is right from its entry, the code that jumps into it with
    another frame is wrong, or was not followed correctly, and its errors count as unknown.
    """

    def is_proved(table: str, pc: int) -> bool:
        judged = own.verdicts.get(table, {}).get(pc)
        return judged is not None and judged.worst is Judgement.PROVED

    def of_both(table: str, pc: int, judged: Judgements) -> Judgements:
        if not is_proved(table, pc):
            return judged
        return PROVED if judged.worst is Judgement.PROVED else _OF_ANOTHER_FRAME

    return Part(
        {
            table: {pc: of_both(table, pc, judged) for pc, judged in verdicts.items()}
            for table, verdicts in part.verdicts.items()
        },
        tuple(finding for finding in part.findings if not is_proved(finding.table, finding.address)),
    )
