"""Reports in the format of static analysis tools, SARIF 2.1.0 (OASIS standard, errata 01).

The numbers of sections below are those of that standard.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from sframe_unwind.baseline import Key
from sframe_unwind.lint.baseline import key
from sframe_unwind.lint.catalogue import RULES, Level
from sframe_unwind.lint.report import named
from sframe_unwind.lint.verdict import FileReport, Shown

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_VERSION = "2.1.0"
_INDEX = {rule: index for index, rule in enumerate(RULES)}


def to_sarif(
    reports: Sequence[FileReport], failures: Sequence[str], known: Collection[Key], version: str
) -> dict[str, Any]:
    """Return a log with one run.

    :param failures: the files that could not be linted, and the reasons.
    :param known: findings of the baseline, which are marked as suppressed.
    :param version: version of this program.
    """
    results = [result for report in reports for result in _results(report, known)]
    run = {
        "tool": {"driver": {"name": "sframe-unwind", "semanticVersion": version, "rules": _rules()}},
        "invocations": [
            {
                "executionSuccessful": not failures,
                "toolExecutionNotifications": [
                    {"level": "error", "message": {"text": failure}} for failure in failures
                ],
            }
        ],
        "results": results,
    }
    return {"$schema": SCHEMA, "version": _VERSION, "runs": [run]}


def _rules() -> list[dict[str, Any]]:
    return [
        {
            "id": rule.id,
            "name": rule.name,
            "shortDescription": {"text": rule.title},
            "defaultConfiguration": {"level": (rule.level or Level.WARNING).value},
        }
        for rule in RULES
    ]


def _results(report: FileReport, known: Collection[Key]) -> Iterator[dict[str, Any]]:
    for section in report.sections:
        for shown in section.findings:
            mark = key(report.file, shown.finding)
            result = {
                "ruleId": shown.finding.rule.id,
                "ruleIndex": _INDEX[shown.finding.rule],
                "level": shown.level.value,
                "message": {"text": _message(shown)},
                "locations": [_location(report.file, section.section, shown)],
                "partialFingerprints": {"fileRuleFunction/v1": "|".join(mark)},
            }
            if mark in known:
                result["suppressions"] = [{"kind": "external"}]  # 3.35: by something outside the file
            yield result


def _message(shown: Shown) -> str:
    effects = [f"{named(profile)}: {then}." for profile, then in shown.effects]
    where = f"{shown.finding.where}: " if shown.finding.where else ""
    return " ".join([f"{where}{shown.finding.message}.", *effects])


def _location(file: str, section: str, shown: Shown) -> dict[str, Any]:
    finding = shown.finding
    place: dict[str, Any] = {"artifactLocation": {"uri": _uri(file)}}
    if finding.offset is not None:
        # 3.32: a place in a binary is named by its section and the offset in it.
        place["address"] = {
            "name": section,
            "fullyQualifiedName": f"{section}+{finding.offset:#x}",
            "kind": "section",
            "offsetFromParent": finding.offset,
        }
    location: dict[str, Any] = {"physicalLocation": place}
    if finding.function is not None:
        name = finding.where or f"{finding.function:#x}"
        location["logicalLocations"] = [{"fullyQualifiedName": name, "kind": "function"}]
    return location


def _uri(file: str) -> str:
    # By bytes: a name need not be UTF-8, and RFC 3986 escapes whatever bytes it has.
    path = quote(os.fsencode(file))
    return f"file://{path}" if PurePath(file).is_absolute() else path
