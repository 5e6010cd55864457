"""Tells whether a consumer would load the SFrame of a file, which functions it would lose, and which rules it breaks.

A section is read once, without judging it (:mod:`reading`), and checked against the rules (:mod:`catalogue`).  Each
profile (:mod:`profiles`) then has the effects of the broken rules on one consumer (:mod:`judging`).
"""

from __future__ import annotations

from collections.abc import Sequence

from sframe_unwind import elf
from sframe_unwind.elf import ElfBinary, PathLike
from sframe_unwind.lint.coverage import coverage_findings
from sframe_unwind.lint.displaced import displaced_findings
from sframe_unwind.lint.findings import Finding
from sframe_unwind.lint.functions import Pass
from sframe_unwind.lint.judging import Facts, judge
from sframe_unwind.lint.objects import relocation_findings
from sframe_unwind.lint.profiles import PROFILES, SPEC, Profile
from sframe_unwind.lint.reading import tables
from sframe_unwind.lint.sections import subjects
from sframe_unwind.lint.showing import shown
from sframe_unwind.lint.structure import (
    container_findings,
    header_findings,
    order_findings,
    pcrel_findings,
    rest_findings,
)
from sframe_unwind.lint.subject import Subject
from sframe_unwind.lint.undescribed import undescribed_findings
from sframe_unwind.lint.verdict import FileReport, SectionReport

__all__ = ["PROFILES", "SPEC", "FileReport", "Profile", "SectionReport", "lint", "lint_elf", "lint_section"]


def lint(path: PathLike, profiles: Sequence[Profile] = (SPEC,)) -> FileReport:
    """Lint the SFrame of a file, linked or not.

    :raises FileError: the file cannot be read, or SFrame has no ABI for its machine.
    :raises NoSFrameError: the file has no SFrame section.
    :raises FormatError: too many of its functions claim the same rows.
    """
    with elf.opened(path) as binary:
        return lint_elf(binary, profiles)


def lint_elf(binary: ElfBinary, profiles: Sequence[Profile] = (SPEC,)) -> FileReport:
    """Lint an ELF file that is open, as :func:`lint` does."""
    return FileReport(binary.name, tuple(lint_section(subject, profiles) for subject in subjects(binary)))


def lint_section(subject: Subject, profiles: Sequence[Profile] = (SPEC,)) -> SectionReport:
    """Lint one section.

    :raises FormatError: too many of its functions claim the same rows.
    """
    facts = gather(subject)
    judged = [judge(facts, profile) for profile in profiles]
    findings: list[Finding] = [*facts.section, *facts.order]
    findings += (finding for function in facts.functions for _, finding in function.broken)
    for _, own in judged:
        findings += own
    if subject.is_read and any(profile.needs_all_functions for profile in profiles):
        findings += undescribed_findings(subject, facts.functions)
    judgements = tuple(judgement for judgement, _ in judged)
    return SectionReport(subject.name, judgements, tuple(shown(findings, judgements, profiles)))


def gather(subject: Subject) -> Facts:
    """Return the findings in a section, independent of any consumer.

    :raises FormatError: too many of its functions claim the same rows.
    """
    found, rest = tables(subject.data)
    read = Pass(subject, found)
    section = [*container_findings(subject), *displaced_findings(subject, read.functions)]
    section += rest_findings(subject, found, rest)
    for table, claimed in zip(found, read.rows_claimed):
        section += header_findings(subject, table, claimed)
    section += pcrel_findings(subject, found, read.functions)
    section += relocation_findings(subject, found, read.functions)
    if subject.is_read:
        section += coverage_findings(subject, read.functions)
    return Facts(subject, found, read.functions, section, list(order_findings(subject, found, read.functions)))
