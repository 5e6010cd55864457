"""What the findings of ``lint`` are recognised by in a baseline."""

from __future__ import annotations

from collections.abc import Iterable

from sframe_unwind.baseline import Key
from sframe_unwind.lint.findings import Finding
from sframe_unwind.lint.verdict import FileReport


def key(file: str, finding: Finding) -> Key:
    """Return what a finding is recognised by."""
    address, _, name = finding.where.partition(" ")
    has_name = name and not name.startswith("(")  # else it is the section's
    return Key(file, finding.rule.id, name if has_name else address)


def keys(reports: Iterable[FileReport]) -> frozenset[Key]:
    """Return what the findings of some reports are recognised by."""
    return frozenset(key(report.file, shown.finding) for report in reports for shown in report.findings)
