"""The project's list of edge cases has 28 items.  Each has tests, with names that begin with its number."""

from __future__ import annotations

import re
from pathlib import Path

ITEMS = range(1, 29)


def test_every_item_has_a_test() -> None:
    texts = (path.read_text(encoding="utf-8") for path in Path(__file__).parent.rglob("test_*.py"))
    found = {int(number) for text in texts for number in re.findall(r"^def test_item_(\d\d)_", text, re.MULTILINE)}
    assert found == set(ITEMS)
