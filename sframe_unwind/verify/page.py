"""Writes the HTML page of ``verify``: one file that needs no network and no other library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sframe_unwind.code.judge.findings import ORC, TITLES
from sframe_unwind.code.judge.judgement import Judgement
from sframe_unwind.elf.section_addresses import FileAddress
from sframe_unwind.report.page import filled, page_of_functions
from sframe_unwind.report.terminal import printable
from sframe_unwind.verify.code_report import CodeReport
from sframe_unwind.verify.inputs import Failure
from sframe_unwind.verify.orc_report import OrcDisagreement, OrcReport
from sframe_unwind.verify.terms import SIDES
from sframe_unwind.verify.verdict import Function, Line, Outcome, Verdict, Words

TEMPLATE = Path(__file__).with_name("page.html")
_NOT_DESCRIBED = "not described"
_WRONG, _UNKNOWN = "wrong by the code", "unknown"
OUTCOMES = [*(outcome.value for outcome in Outcome), _NOT_DESCRIBED, _WRONG, _UNKNOWN]
"""The outcomes that have a colour in the map, in the order of the page's list."""


def page(verdicts: Sequence[Verdict], failures: Sequence[Failure], version: str, folder: Path | None = None) -> str:
    """Return an HTML page that shows the findings of all files, and the files that could not be compared.

    :param version: version of this project, for the foot of the page.
    :param folder: of the page: it links to the pages of ``show`` there; ``None``: to none.
    """
    return filled(TEMPLATE, _Data(folder).of(verdicts, failures), version)


_BY_CODE = {Judgement.WRONG: _WRONG, Judgement.UNKNOWN: _UNKNOWN}


class _Data:
    """Makes the data for the page's script: each text occurs once, and is referred to by its number."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._texts: dict[str, int] = {}

    def of(self, verdicts: Sequence[Verdict], failures: Sequence[Failure]) -> dict[str, Any]:
        folder = _common_folder([verdict.file for verdict in verdicts])
        files = [self._file(verdict, verdict.file[len(folder) :]) for verdict in verdicts]
        return {
            "outcomes": OUTCOMES,
            "failures": [printable(str(failure)) for failure in failures],
            "problems": [printable(text) for verdict in verdicts for text in _problems(verdict)],
            "files": files,
            "texts": list(self._texts),
        }

    def _file(self, verdict: Verdict, label: str) -> dict[str, Any]:
        code, orc = verdict.code, verdict.orc
        return {
            "name": printable(verdict.file),
            "label": printable(label),
            "show": page_of_functions(verdict.file, self._folder) if self._folder is not None else "",
            "relative": any(spot.relative for spot in _spots(verdict)),
            "withDwarf": verdict.compared,
            "known": verdict.known,
            "sizes": verdict.sizes._asdict(),
            "compared": verdict.addresses_compared,
            "disagreements": len(verdict.disagreements),
            "code": None if code is None else _counts(code),
            "orc": None if orc is None else self._orc(orc),
            "functions": [self._function(function, code) for function in verdict.functions],
        }

    def _function(self, function: Function, code: CodeReport | None) -> list[Any]:
        judged = code.judged.get(function.spot) if code is not None else None
        fields = [
            printable(function.name),
            self._text(function.spot.section),
            hex(function.spot.address),
            function.size,
            list(Outcome).index(function.outcome),
            self._text(function.reason),
            OUTCOMES.index(_BY_CODE[judged]) if judged in _BY_CODE else -1,
        ]
        if function.lines:
            fields.append([self._line(function, line) for line in function.lines])
        return fields

    def _line(self, function: Function, line: Line) -> list[int]:
        differs = sum(1 << bit for bit, what in enumerate(Words._fields) if what in line.differs)
        texts = (*line.sframe, *line.dwarf, *(line.orc or ()), *(line.code or ()))
        return [line.spot.address - function.spot.address, differs, *map(self._text, texts)]

    def _orc(self, orc: OrcReport) -> dict[str, Any]:
        title = TITLES[orc.table]
        only = [(TITLES[ORC], *one) for one in orc.orc_only] + [(title, *one) for one in orc.other_only]
        return {
            "with": title,
            "both": orc.both,
            "compared": orc.addresses_compared,
            "disagreements": [self._orc_disagreement(one) for one in orc.disagreements],
            "only": [
                [self._text(who), self._text(gap.spot.section), hex(gap.spot.address), self._text(name), gap.size]
                for who, name, gap in only
            ],
        }

    def _orc_disagreement(self, one: OrcDisagreement) -> list[Any]:
        code = "" if one.code is None else SIDES[one.code]
        texts = (one.function, one.what, one.orc, one.other, code)
        return [self._text(one.spot.section), hex(one.spot.address), *map(self._text, texts)]

    def _text(self, text: str) -> int:
        return self._texts.setdefault(printable(text), len(self._texts))


def _spots(verdict: Verdict) -> Iterator[FileAddress]:
    yield from (function.spot for function in verdict.functions)
    if verdict.orc is not None:
        yield from (one.spot for one in verdict.orc.disagreements)
        yield from (gap.spot for _, gap in (*verdict.orc.orc_only, *verdict.orc.other_only))


def _problems(verdict: Verdict) -> Iterator[str]:
    """Yield the problems of a file as a whole."""
    yield from (f"{verdict.file}: CFI that cannot be read: {text}" for text in verdict.problems)
    yield from (f"{verdict.file}: cannot be loaded: {text}" for text in verdict.loading)


def _counts(code: CodeReport) -> dict[str, Any]:
    """Return the number of findings, and the number of instructions with each verdict for each table."""
    return {
        "instructions": code.instructions,
        "findings": sum(not finding.assumes for finding in code.findings),
        "tables": {TITLES[table]: list(counts) for table, counts in code.counts.items()},
    }


def _common_folder(names: Sequence[str]) -> str:
    """Return the common beginning of all names, up to a slash."""
    first, last = min(names, default=""), max(names, default="")
    same = next((at for at, pair in enumerate(zip(first, last)) if pair[0] != pair[1]), len(first))
    return first[: first.rfind("/", 0, same) + 1]
