"""The pages of `verify` and of `survey` link to the page of `show` beside them, and to none that is not there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sframe_unwind.cli import main
from tests.browser import WAITING, render
from tests.samples.build import build

LINKS = """
    const links = [...document.querySelectorAll("a")].filter((link) => link.textContent === "instructions");
    return JSON.stringify(links.map((link) => link.getAttribute("href")));
"""


@pytest.fixture
def program() -> Path:
    """Return a program with a wrong row by GNU ld."""
    return build("plt")


def links(page: Path) -> list[str]:
    found: list[str] = json.loads(render(page, script=LINKS).by_id("result").text)
    return found


def test_verify_links_to_the_functions(program: Path, tmp_path: Path) -> None:
    """A link opens the function at the address."""
    page, shown = tmp_path / "verify.html", tmp_path / f"{program.name}.show.html"
    assert main(["verify", str(program), "--html", str(page)]) == 1
    assert links(page) == []
    assert main(["show", str(program), "--html", str(shown)]) == 1
    assert main(["verify", str(program), "--html", str(page)]) == 1
    (found,) = links(page)
    name, _, place = found.partition("#")
    assert name == shown.name
    script = f"""
        location.hash = "#{place}";
        const ready = () => byId("title").textContent;
        const wait = () => {{ if (ready()) byId("result").textContent = ready(); else setTimeout(wait, 5); }};
        setTimeout(wait, 5);
        return "";
    """
    opened = render(shown, WAITING, script=script).by_id("result").text
    assert opened.endswith(f"@plt, {place}, 16 bytes")


def test_survey_links_to_the_files(program: Path, tmp_path: Path) -> None:
    page, shown = tmp_path / "survey.html", tmp_path / f"{program.name}.show.html"
    survey = ["survey", str(program), "--store", str(tmp_path / "store"), "--html", str(page), "-j", "1"]
    assert main(["show", str(program), "--html", str(shown)]) == 1
    assert main(survey) in (0, 1)
    found = links(page)
    assert found
    assert {link.partition("#")[0] for link in found} == {shown.name}
    assert any("#0x" in link for link in found)
    # The address of a finding of lint is one in the section: the link is to its function.
    assert not any(link.endswith("#0x0") for link in found)
