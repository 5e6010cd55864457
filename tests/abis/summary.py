"""Prints the test matrix and the number of stepped instructions at the end of a test run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from tests.abis.cells import ENCODED, VARIANTS, left_out
from tests.abis.debuggers import title
from tests.abis.native import WRONG
from tests.samples.catalogue import ABIS
from tools.binutils import SFRAME_VERSIONS

CELL = "cell of the matrix"
"""Name of a test's property: JSON of the test that ran in a cell."""
STEPPED = "instructions stepped"
"""Prefix of the names of properties that count instructions."""


def lines(properties: Iterable[tuple[str, Any]], skipped: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the lines of the summary.

    :param properties: the properties of all reports.
    :param skipped: cells as JSON, with the reason why each was skipped.
    """
    found = list(properties)
    records = [json.loads(value) for name, value in found if name == CELL]
    reasons = {_key(json.loads(cell)): reason for cell, reason in skipped}
    if records:
        yield from _matrix({_key(record): record for record in records}, reasons)
    counts: Counter[str] = Counter()
    for name, value in found:
        if name.startswith(STEPPED):
            counts[name] += int(value)
    for name, count in sorted(counts.items()):
        yield f"{name}: {count:,}"
    if len(counts) > 1:
        yield f"{STEPPED}, all: {sum(counts.values()):,}"


def _key(record: dict[str, Any]) -> tuple[str, int, str, str]:
    return record["abi"], record["version"], record["debugger"], record["variant"]


def _matrix(records: dict[tuple[str, int, str, str], dict[str, Any]], reasons: dict[Any, str]) -> Iterator[str]:
    """Yield the numbers of passed stops by ABI, version and debugger, and the missing cells with their reasons."""
    yield "matrix: stops whose stack by SFrame is right, of those that ran"
    heads = ("ABI", "version", "written by", "debugger", *VARIANTS)
    rows: list[tuple[str, ...]] = [heads]
    for abi, version, debugger in sorted({key[:3] for key in records}, key=_order):
        cells = [_cell(records, reasons, (abi, version, debugger, variant)) for variant in VARIANTS]
        rows.append((abi, str(version), producer(abi, version), title(debugger), *cells))
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
    for key, reason in reasons.items():
        yield f"  skipped: {key[0]}, version {key[1]}, {title(key[2])}, {key[3]}: {reason}"
    for (abi, debugger), stops in WRONG.items():
        if any(key[0] == abi and key[2] == debugger for key in records):
            for reason in dict.fromkeys(stops.values()):
                names = ", ".join(name for name, why in stops.items() if why == reason)
                yield f"  held against the expectation alone: {abi}, {title(debugger)}: {names}: {reason}"
    for what, reason in left_out():
        yield f"  not in it: {what}: {reason}"


def _order(row: tuple[str, int, str]) -> tuple[int, int, str]:
    return list(ABIS).index(row[0]), row[1], row[2]


def _cell(records: dict[Any, dict[str, Any]], reasons: dict[Any, str], key: tuple[str, int, str, str]) -> str:
    if key in reasons:
        return "skipped"
    record = records.get(key)
    if record is None:
        return "not run"
    failed = record["failed"]
    count = f"{record['passed']} of {record['passed'] + len(failed)}"
    return f"{count} (not {', '.join(failed)})" if failed else count


def producer(abi: str, version: int) -> str:
    """Return the producer of a version."""
    if (abi, version) in ENCODED:
        return "the encoder"
    return "GNU as " + next(name for name, written in SFRAME_VERSIONS.items() if written == version)
