"""The README and the pages of docs/: their length, whom each is for, and the index."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sframe_unwind.debugger import commands

CHECKOUT = Path(__file__).resolve().parents[1]
LONGEST_README = 200
"""In lines: the README is an introduction; all else is on the pages of docs/."""


def pages() -> dict[str, str]:
    found = {page.name: page.read_text(encoding="utf-8") for page in (CHECKOUT / "docs").glob("*.md")}
    assert len(found) > 20
    return found


def test_the_readme_is_short() -> None:
    assert len((CHECKOUT / "README.md").read_text(encoding="utf-8").splitlines()) <= LONGEST_README


def test_every_page_begins_with_whom_it_is_for() -> None:
    begins = re.compile(r"# [^\n]+\n\nThis page is for people (?:who|whose) ")
    assert [name for name, text in pages().items() if not begins.match(text)] == []


def test_the_index_has_every_page() -> None:
    index = pages()["README.md"]
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", index))
    assert linked == pages().keys() - {"README.md"}


@pytest.mark.parametrize(("page", "without"), [("gdb.md", {commands.CONVERT.name}), ("lldb.md", set())])
def test_the_page_of_a_debugger_has_every_command(page: str, without: set[str]) -> None:
    table = pages()[page].partition("\n## Commands\n")[2].partition("\n## ")[0]
    first_cells = " ".join(row.split(" | ")[0] for row in table.replace(r"\|", "").splitlines())
    named = set(re.findall(r"`(?:set )?(?:sframe )?([a-z]+)", first_cells))
    known = {value.name for value in vars(commands).values() if isinstance(value, commands.Command)}
    assert len(known) > 8
    assert known - named == without
