"""A report as text and as JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import Any

from sframe_unwind.baseline import Key
from sframe_unwind.consumers import CONSUMERS
from sframe_unwind.errors import counted
from sframe_unwind.lint.baseline import key
from sframe_unwind.lint.catalogue import FUNCTION_WITHOUT_ROWS, Level, Rule
from sframe_unwind.lint.findings import Finding
from sframe_unwind.lint.verdict import FileReport, Judgement, Outcome, SectionReport, Shown

_MOST = 5
"""Maximum number of findings of one rule, and of lost functions, in the text.  It has all functions without rows."""


def counts(report: FileReport, known: Collection[Key]) -> bool:
    """Return whether a report has a finding that matters and is not in the baseline."""
    return any(
        shown.level is not Level.NOTE and key(report.file, shown.finding) not in known for shown in report.findings
    )


def to_text(report: FileReport, known: Collection[Key] = frozenset()) -> Iterator[str]:
    """Yield the lines for a file.

    :param known: findings that are left out; only their number is shown.
    """
    for section in report.sections:
        title = report.file if len(report.sections) == 1 else f"{report.file}: {section.section}"
        for judgement in section.judgements:
            yield f"{title}: {named(judgement.profile)}: {_summary(judgement)}"
            yield from _losses(judgement)
        fresh = [shown for shown in section.findings if key(report.file, shown.finding) not in known]
        yield from _findings(fresh)
        if len(fresh) < len(section.findings):
            yield f"  known by the baseline: {counted(len(section.findings) - len(fresh), 'finding')}"


def named(profile: str) -> str:
    """Return the name of a profile with the revision of the consumer that it describes."""
    return f"{profile} ({CONSUMERS[profile].revision})"


def _summary(judgement: Judgement) -> str:
    outcome = judgement.outcome
    if outcome is Outcome.ACCEPTED:
        return "accepted whole"
    if outcome is Outcome.NOT_LOADED:
        return "not judged: an object file, which is never loaded"
    if outcome is Outcome.LOSES:
        functions = counted(len(judgement.losses), "function")
        return f"accepted with losses: {functions}, {counted(judgement.lost, 'byte')} of code"
    first, *others = judgement.refusals
    more = f" and {len(others)} more" if others else ""
    offset = "" if first.finding.offset is None else f" at .sframe+{first.finding.offset:#x}"
    return f"refused for {first.finding.rule}{offset}{more}: {first.then}"


def _losses(judgement: Judgement) -> Iterator[str]:
    for loss in judgement.losses[:_MOST]:
        yield f"  loses {counted(loss.size, 'byte')} of {loss.where}: {', '.join(map(str, loss.rules))}"
    if len(judgement.losses) > _MOST:
        yield _more(counted(len(judgement.losses) - _MOST, "more function"))


def _findings(findings: list[Shown]) -> Iterator[str]:
    by_rule: dict[Rule, list[Shown]] = {}
    for shown in findings:
        by_rule.setdefault(shown.finding.rule, []).append(shown)
    for group in by_rule.values():
        # Consumers can expect different things: the expectation of each is shown below.
        most = len(group) if group[0].finding.rule is FUNCTION_WITHOUT_ROWS else _MOST
        for effects, alike in groupby(group[:most], attrgetter("effects")):
            yield from (f"  {shown.level.value}: {_place(shown.finding)}" for shown in alike)
            yield from _effects(effects)
        told = {effect for shown in group[:most] for effect in shown.effects}
        left = (effect for shown in group[most:] for effect in shown.effects)
        yield from _effects(dict.fromkeys(effect for effect in left if effect not in told))
        if len(group) > most:
            yield _more(f"{len(group) - most} more {group[0].finding.rule}")


def _effects(effects: Iterable[tuple[str, str]]) -> Iterator[str]:
    return (f"    {name}: {then}" for name, then in effects)


def _more(what: str) -> str:
    return f"  ... {what} (--json has all)"


def _place(finding: Finding) -> str:
    offset = "" if finding.offset is None else f" at .sframe+{finding.offset:#x}"
    where = f" ({finding.where})" if finding.where else ""
    return f"{finding.rule}{offset}{where}: {finding.message}"


def to_json(report: FileReport, known: Collection[Key] = frozenset()) -> dict[str, Any]:
    """Return the object of ``lint --json`` for a file."""
    return {"file": report.file, "sections": [_section(report.file, section, known) for section in report.sections]}


def _section(file: str, section: SectionReport, known: Collection[Key]) -> dict[str, Any]:
    return {
        "section": section.section,
        "profiles": [_judgement(judgement) for judgement in section.judgements],
        "findings": [
            {
                **_finding(shown.finding),
                "level": shown.level.value,
                "effects": dict(shown.effects),
                "known": key(file, shown.finding) in known,
            }
            for shown in section.findings
        ],
    }


def _judgement(judgement: Judgement) -> dict[str, Any]:
    return {
        "profile": judgement.profile,
        "revision": CONSUMERS[judgement.profile].revision,
        "read_from": CONSUMERS[judgement.profile].source,
        "outcome": judgement.outcome.value,
        "functions_lost": len(judgement.losses),
        "bytes_lost": judgement.lost,
        "refused_for": [{**_finding(refusal.finding), "then": refusal.then} for refusal in judgement.refusals],
        "lost": [
            {"address": loss.start, "where": loss.where, "bytes": loss.size, "rules": [rule.id for rule in loss.rules]}
            for loss in judgement.losses
        ],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule.id,
        "name": finding.rule.name,
        "offset": finding.offset,
        "address": finding.function,
        "where": finding.where,
        "message": finding.message,
    }
