"""The page for people who would rather look than read: one file, without network or anybody's library."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from sframe_unwind import __version__
from sframe_unwind.report.terminal import printable
from sframe_unwind.verify.inputs import Failure
from sframe_unwind.verify.verdict import Function, Line, Outcome, Verdict, Words

_TEMPLATE = Path(__file__).with_name("page.html")
_PLACE = "@DATA@"
_NOT_DESCRIBED = "not described"


def page(verdicts: Sequence[Verdict], failures: Sequence[Failure]) -> str:
    """Return the HTML page that shows what was found in all files, and which could not be compared."""
    data = json.dumps(_Data().of(verdicts, failures), separators=(",", ":"))
    # What ends the element that holds the data, or begins a comment in it, must not stand there.
    for character in "<>&":
        data = data.replace(character, f"\\u{ord(character):04x}")
    return _TEMPLATE.read_text(encoding="utf-8").replace(_PLACE, data)


class _Data:
    """Makes what the page's script reads: texts stand there once, and the rest refers to them by number."""

    def __init__(self) -> None:
        self._texts: dict[str, int] = {}

    def of(self, verdicts: Sequence[Verdict], failures: Sequence[Failure]) -> dict[str, Any]:
        folder = _common_folder([verdict.file for verdict in verdicts])
        files = [self._file(verdict, verdict.file[len(folder) :]) for verdict in verdicts]
        return {
            "version": __version__,
            "made": f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC",
            "outcomes": [*(outcome.value for outcome in Outcome), _NOT_DESCRIBED],
            "failures": [printable(str(failure)) for failure in failures],
            "files": files,
            "texts": list(self._texts),
        }

    def _file(self, verdict: Verdict, label: str) -> dict[str, Any]:
        return {
            "name": printable(verdict.file),
            "label": printable(label),
            "relative": any(function.spot.relative for function in verdict.functions),
            "sizes": verdict.sizes._asdict(),
            "compared": verdict.addresses_compared,
            "disagreements": len(verdict.disagreements),
            "functions": [self._function(function) for function in verdict.functions],
        }

    def _function(self, function: Function) -> list[Any]:
        fields = [
            printable(function.name),
            self._text(function.spot.section),
            function.spot.address,
            function.size,
            list(Outcome).index(function.outcome),
            self._text(function.reason),
        ]
        if function.lines:
            fields.append([self._line(function, line) for line in function.lines])
        return fields

    def _line(self, function: Function, line: Line) -> list[int]:
        differs = sum(1 << bit for bit, what in enumerate(Words._fields) if what in line.differs)
        return [line.spot.address - function.spot.address, differs, *map(self._text, (*line.sframe, *line.dwarf))]

    def _text(self, text: str) -> int:
        return self._texts.setdefault(printable(text), len(self._texts))


def _common_folder(names: Sequence[str]) -> str:
    """Return what all names begin with, up to a slash."""
    first, last = min(names, default=""), max(names, default="")
    same = next((at for at, pair in enumerate(zip(first, last)) if pair[0] != pair[1]), len(first))
    return first[: first.rfind("/", 0, same) + 1]
