"""A baseline: findings that are known, so that only new ones count.

A finding is recognised by file, rule and function, not by addresses and offsets, which change with every build.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from sframe_unwind.errors import FileError
from sframe_unwind.lint.findings import Finding
from sframe_unwind.lint.verdict import FileReport

_FORMAT = "sframe-unwind lint baseline"
_VERSION = 1


class Key(NamedTuple):
    """What a finding is recognised by."""

    file: str
    """As it was named, or found in a named directory or archive."""
    rule: str
    """Its number: ``SF030``."""
    where: str
    """Name of the function, or its address where it has none; empty: the finding concerns the section."""


def key(file: str, finding: Finding) -> Key:
    """Return what a finding is recognised by."""
    address, _, name = finding.where.partition(" ")
    has_name = name and not name.startswith("(")  # else it is the section's
    return Key(file, finding.rule.id, name if has_name else address)


def read(path: str) -> frozenset[Key]:
    """Read a baseline.

    :raises FileError: the file cannot be read, or is no baseline.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path}: not a baseline: {error}") from error
    try:
        if content[_FORMAT] != _VERSION:
            raise FileError(f"{path}: a baseline of version {content[_FORMAT]}, expected {_VERSION}")
        return frozenset(Key(str(entry["file"]), str(entry["rule"]), str(entry["where"])) for entry in content["known"])
    except (KeyError, TypeError) as error:
        raise FileError(f"{path}: not a baseline: no {error}") from error


def to_text(reports: Iterable[FileReport]) -> str:
    """Return a baseline that accepts everything in some reports."""
    content = {_FORMAT: _VERSION, "known": [entry._asdict() for entry in sorted(keys(reports))]}
    return json.dumps(content, indent=1) + "\n"


def keys(reports: Iterable[FileReport]) -> frozenset[Key]:
    """Return what the findings of some reports are recognised by."""
    return frozenset(key(report.file, shown.finding) for report in reports for shown in report.findings)
