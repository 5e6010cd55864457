"""Chooses the findings to show, and their levels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sframe_unwind.lint import catalogue as c
from sframe_unwind.lint.catalogue import Level
from sframe_unwind.lint.findings import Finding
from sframe_unwind.lint.profiles import Kind, Profile
from sframe_unwind.lint.verdict import Judgement, Outcome, Shown

_UNREAD = (c.VERSION_NOT_READ, c.ABI_NOT_READ)


def shown(findings: Iterable[Finding], judgements: Sequence[Judgement], profiles: Sequence[Profile]) -> Iterator[Shown]:
    """Yield the findings that matter, each once, in the order of their rules and places."""
    judged = [
        (profile, judgement, {refusal.finding for refusal in judgement.refusals})
        for profile, judgement in zip(profiles, judgements)
        if judgement.outcome is not Outcome.NOT_LOADED
    ]
    ordered = sorted(dict.fromkeys(findings), key=lambda finding: (finding.rule.number, finding.offset or 0))
    for finding in ordered:
        level, effects = finding.rule.level, []
        for profile, judgement, refusing in judged:
            kind, then = _effect(finding, profile, finding in refusing, judgement.outcome)
            if kind is None:
                continue
            effects.append((profile.name, then))
            found = Level.NOTE if finding.rule in _INHERENT else _LEVELS[kind]
            level = Level.ERROR if Level.ERROR in (level, found) else found
        if level is not None:
            yield Shown(finding, level, tuple(effects))


_INHERENT = (c.INIT_CODE,)
"""Rules about losses that are no error: each module of the kernel has them."""
_LEVELS = {Kind.REFUSES: Level.ERROR, Kind.LOSES: Level.WARNING, Kind.MINDS: Level.WARNING}


def _effect(finding: Finding, profile: Profile, refuses: bool, outcome: Outcome) -> tuple[Kind | None, str]:
    if refuses:
        effect = profile.effects.get(finding.rule)
        return Kind.REFUSES, effect.then if effect else profile.unread
    effect = profile.effects.get(finding.rule)
    # If the section is refused, its functions are not read.
    if effect is None or effect.kind is Kind.REFUSES or finding.rule in _UNREAD or outcome is Outcome.REFUSED:
        return None, ""
    return effect.kind, effect.then
