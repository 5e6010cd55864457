"""Each item of docs/edge-cases.md has tests, with names that begin with its number."""

from __future__ import annotations

import re
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]


def items() -> list[int]:
    page = (CHECKOUT / "docs" / "edge-cases.md").read_text(encoding="utf-8")
    return [int(number) for number in re.findall(r"^(\d+)\. ", page, re.MULTILINE)]


def test_the_items_are_numbered_in_order() -> None:
    assert items() == list(range(1, len(items()) + 1))
    assert len(items()) >= 30


def test_every_item_has_a_test_and_every_test_an_item() -> None:
    texts = (path.read_text(encoding="utf-8") for path in (CHECKOUT / "tests").rglob("test_*.py"))
    found = {int(number) for text in texts for number in re.findall(r"^def test_item_(\d\d)_", text, re.MULTILINE)}
    assert found == set(items())
