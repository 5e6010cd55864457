"""Recognises the findings of ``lint`` in a baseline."""

from __future__ import annotations

from collections.abc import Iterable

from sframe_unwind.baseline import Key
from sframe_unwind.lint.findings import Finding
from sframe_unwind.lint.verdict import FileReport


def key(file: str, finding: Finding) -> Key:
    """Return the key of a finding."""
    address, _, name = finding.where.partition(" ")
    has_name = name and not name.startswith("(")  # otherwise it names the section
    return Key(file, finding.rule.id, name if has_name else address)


def keys(reports: Iterable[FileReport]) -> frozenset[Key]:
    """Return the keys of the findings in some reports."""
    return frozenset(key(report.file, shown.finding) for report in reports for shown in report.findings)
