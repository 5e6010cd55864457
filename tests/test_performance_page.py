"""`docs/performance.md` has the tables that `python -m bench.page` generates from `bench/results.json`."""

from __future__ import annotations

import pytest

from bench.__main__ import PARTS
from bench.page import BEGIN, END, PAGE, filled
from bench.report import Row, Target
from bench.results import RESULTS, read, to_json

PART = {"date": "2026-11-26", "load": 1.5, "processors": 2, "python": "3.11.7"}


def test_page_has_the_results() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert filled(text, read(RESULTS)) == text


def test_results_are_of_parts_that_exist() -> None:
    results = read(RESULTS)
    assert results
    assert results.keys() <= PARTS.keys()
    assert all(part["rows"] for part in results.values())


def test_line_has_median_quartiles_and_target() -> None:
    rows = [
        Row("peer", "dump / readelf", [2.0, 4.0, 3.0], "x", Target(2.5))._replace(detail="this 3 s, peer 1 s"),
        Row("peer", "lookups", [1.25], "µs", Target(1, at_least=True)),
        Row("peer", "another", (), "x")._replace(detail="readelf is not installed"),
    ]
    page = filled(f"before\n{BEGIN}{END}after\n", {"peer": {**PART, "rows": to_json(rows)}})
    assert page.splitlines() == [
        "before",
        BEGIN.strip(),
        "",
        "`python -m bench peer`, 2026-11-26, 2 processors, a load of 1.5, Python 3.11.7:",
        "",
        "| figure | median | quartiles | target | made of |",
        "|---|--:|--:|--:|---|",
        "| dump / readelf | 3 (missed) | 2 to 4 | at most 2.5 | this 3 s, peer 1 s |",
        "| lookups | 1.25 µs |  | at least 1 µs |  |",
        "| another | not measured |  |  | readelf is not installed |",
        "",
        END.strip(),
        "after",
    ]


def test_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="expected"):
        filled("no marks\n", {})
