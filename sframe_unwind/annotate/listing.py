"""Shows functions with their directives, as a listing and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sframe_unwind.annotate.functions import Annotated
from sframe_unwind.code.image.ranges import CodeRange
from sframe_unwind.errors import counted
from sframe_unwind.report.demangle import demangle
from sframe_unwind.report.listing import Row
from sframe_unwind.show.file import ShownFile

_TEXT_COLUMN = 10
"""The width of the column of addresses."""


def lines(file: ShownFile, function: Annotated) -> Iterator[str]:
    """Yield the lines of a function: its instructions, and each directive where it belongs."""
    found = file.listing(CodeRange(function.start, function.end))
    moved = file.shown(function.start) - function.start
    shown: dict[int, tuple[str, ...]] = {}
    for placed in function.directives:  # where one part ends, another may begin
        at = placed.address + moved
        shown[at] = (*shown.get(at, ()), *placed.directives)
    yield f"{title(file, function)}:"
    for row in found.rows:
        yield from (f"{label}:" for label in row.extra.labels)
        yield from _directives(shown.pop(row.address, ()))
        yield _instruction(row)
    for left in shown.values():
        yield from _directives(left)
    yield from (f"  no directives for {_range(file, start, end)}" for start, end in function.gaps)


def title(file: ShownFile, function: Annotated) -> str:
    """Return the name and the place of a function."""
    name = demangle(function.name)
    return f"{name or '(no name)'} ({_range(file, function.start, function.end)})"


def _range(file: ShownFile, start: int, end: int) -> str:
    return f"{file.functions.shown(start)}, {counted(end - start, 'byte')}"


def _directives(directives: tuple[str, ...]) -> Iterator[str]:
    return (f"{'':{_TEXT_COLUMN}}  {directive}" for directive in directives)


def _instruction(row: Row) -> str:
    text = row.text or row.raw.hex(" ")
    relocations = f"  # {', '.join(row.extra.relocations)}" if row.extra.relocations else ""
    return f"{row.address:>{_TEXT_COLUMN}x}      {text}{relocations}"


def to_json(file: ShownFile, function: Annotated) -> dict[str, Any]:
    """Return the JSON object of a function."""
    spot = file.binary.layout.spot(function.start)
    moved = spot.address - function.start
    return {
        "name": function.name,
        "section": spot.section,
        "start": spot.address,
        "size": function.end - function.start,
        "relative": spot.relative,
        "why": function.why,
        "directives": [
            {"address": placed.address + moved, "directives": list(placed.directives)} for placed in function.directives
        ],
        "gaps": [{"start": start + moved, "size": end - start} for start, end in function.gaps],
        "rules": function.rules._asdict(),
    }
