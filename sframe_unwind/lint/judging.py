"""Derives the verdict of a consumer on a section from the rules that the section breaks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sframe_unwind.lint import catalogue as c
from sframe_unwind.lint.catalogue import Rule
from sframe_unwind.lint.findings import Finding
from sframe_unwind.lint.functions import Described
from sframe_unwind.lint.losses import nearest_losses, own_losses
from sframe_unwind.lint.profiles import Kind, Objects, Profile
from sframe_unwind.lint.reading import TableReading
from sframe_unwind.lint.subject import Subject
from sframe_unwind.lint.verdict import Judgement, Loss, Outcome, Refusal
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.sframe.constants import ARCH_BY_ABI

_VERSION, _ABI, _ROWS_OFFSET = 2, 4, 24
"""Offsets of the fields of a header, in bytes."""
_UNREADABLE = (c.FDE_OUTSIDE_TEXT, c.FDE_ATTRIBUTES)
"""Rules after whose violation Linux does not read the rest of an FDE."""


class Facts(NamedTuple):
    """The findings in a section."""

    subject: Subject
    tables: Sequence[TableReading]
    functions: Sequence[Described]
    section: Sequence[Finding]
    """Findings about the section and its headers."""
    order: Sequence[Finding]
    """Findings about the order and the extents of functions; their offsets are those of the FDEs."""


def judge(facts: Facts, profile: Profile) -> tuple[Judgement, list[Finding]]:
    """Return the verdict of a consumer on a section, and the findings that concern only this consumer."""
    if facts.subject.is_object and profile.objects is Objects.NOT_LOADED:
        return Judgement(profile.name, Outcome.NOT_LOADED), []
    own = list(_unread(facts, profile))
    refusals = [Refusal(finding, profile.unread) for finding in own]
    for finding in _met(facts, profile):
        effect = profile.effects.get(finding.rule)
        if effect is not None and effect.kind is Kind.REFUSES:
            refusals.append(Refusal(finding, effect.then))
    if refusals:
        return Judgement(profile.name, Outcome.REFUSED, tuple(refusals)), own
    losses = tuple(_losses(facts, profile))
    return Judgement(profile.name, Outcome.LOSES if losses else Outcome.ACCEPTED, (), losses), own


def _unread(facts: Facts, profile: Profile) -> Iterator[Finding]:
    """Yield a finding if the consumer does not read the section's version, or does not exist for its machine."""
    for table in facts.tables[:1]:
        version, abi = table.header.version, table.header.abi
        if version not in profile.consumer.versions:
            message = f"version {version}, expected {' or '.join(map(str, profile.consumer.versions))}"
            yield Finding(c.VERSION_NOT_READ, message, table.offset + _VERSION)
        if profile.consumer.abis and abi not in profile.consumer.abis:
            names = " or ".join(ARCH_BY_ABI[number].name for number in profile.consumer.abis)
            yield Finding(c.ABI_NOT_READ, f"ABI {int(abi)}, expected {names}", table.offset + _ABI)


def _met(facts: Facts, profile: Profile) -> Iterator[Finding]:
    """Yield the findings that a consumer encounters if it reads only the first table."""
    end = facts.tables[1].offset if len(facts.tables) > 1 else len(facts.subject.data)
    for finding in (*facts.section, *facts.order):
        if not profile.reads_rows_size and finding.rule is c.AREA_OUTSIDE and finding.offset == _ROWS_OFFSET:
            continue
        if finding.offset is None or finding.offset < end or finding.rule is c.RELOCATION_STRAY:
            yield finding
    for function in facts.functions:
        if function.table:
            continue
        unreadable = profile.is_linux and any(rule in _UNREADABLE for rule, _ in function.broken)
        for rule, finding in function.broken:
            if not unreadable and (not profile.is_lazy or _looked_at(rule, function, profile)):
                yield finding


def _looked_at(rule: Rule, function: Described, profile: Profile) -> bool:
    """Return whether a lookup reads the part that breaks a rule."""
    if rule in (c.FRE_TYPE, c.FDE_TYPE):
        return function.rows > 0
    if rule is not c.REPETITION_0:
        return True
    # For a mask FDE, Linux divides by the repetition size before it reads a row; the others do so afterwards.
    has_row = function.rows > 0 and all(rule is not c.FRE_TYPE for rule, _ in function.broken)
    return function.size > 0 and (profile.is_linux or has_row)


def _losses(facts: Facts, profile: Profile) -> Iterator[Loss]:
    elsewhere: dict[int, list[Rule]] = {}
    for finding in facts.order:
        if finding.offset is not None:
            elsewhere.setdefault(finding.offset, []).append(finding.rule)
    first = [function for function in facts.functions if not function.table and function.size]
    find = nearest_losses if profile.finds_nearest else own_losses
    for function, size, rules in find(first, profile, elsewhere):
        yield Loss(function.start, facts.subject.name_of(function.start), size, rules)
    concatenated = profile.effects.get(c.CONCATENATED)
    if concatenated is not None and concatenated.kind is Kind.LOSES:
        for function in facts.functions:
            if function.table and function.size:
                name = facts.subject.name_of(function.start)
                yield Loss(function.start, name, function.size, (c.CONCATENATED,))
