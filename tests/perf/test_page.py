"""The page of a recording in a real browser, compared with the JSON and the folded stacks of the same recording."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from sframe_unwind.cli import main
from sframe_unwind.perf.call_tree import CallTree, Stack
from tests.browser import Element, check_narrow, render
from tests.perf import programs

DRAWN = """
    byId("method").value = data.methods.findIndex((one) => one.name === "dwarf");
    byId("method").onchange({ target: byId("method") });
    const frames = [...document.querySelectorAll("#graph .frame")].map((one) => one.title);
    byId("other").value = data.methods.findIndex((one) => one.name === "fp");
    byId("other").onchange({ target: byId("other") });
    const compared = [...document.querySelectorAll("#graph .frame")].map((one) => [one.title, one.style.background]);
    const innermost = [...document.querySelectorAll("#graph .frame")].pop();
    innermost.click();
    return JSON.stringify({ frames, compared, zoomed: innermost.textContent, at: byId("about").textContent });
"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return programs.record(programs.sorting(), tmp_path_factory.mktemp("recording"))


@pytest.fixture(scope="module")
def page(recording: Path) -> Element:
    path = recording.with_suffix(".html")
    assert main(["perf", str(recording), "--html", str(path)]) == 0
    return render(path, script=DRAWN)


def cells(table: Element) -> list[list[str]]:
    return [[cell.text for cell in row.all("td")] for row in table.all("tr")[1:]]


def test_tables_have_the_numbers_of_the_json(
    page: Element, recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["perf", str(recording), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    methods = cells(page.by_id("methods"))
    assert len(methods) == len(printed["methods"])
    for row, counts in zip(methods, printed["methods"].values()):
        assert [int(cell.replace(",", "")) for cell in row[1:5]] == list(counts.values())
    # Other tables have the names.
    assert [row[0].split()[-1] for row in methods] == [f"({name})" for name in printed["methods"]]
    ((_, pid, tid, *_),) = cells(page.by_id("threads"))
    assert pid == tid
    assert "," not in pid
    blockers = cells(page.by_id("blockers"))
    assert Counter(row[1] for row in blockers) == Counter(one["method"] for one in printed["blockers"])
    assert sum(int(row[0]) for row in blockers) == sum(one["samples"] for one in printed["blockers"])


def test_a_narrow_window(page: Element, recording: Path) -> None:  # noqa: ARG001  # which writes it
    check_narrow(recording.with_suffix(".html"))


def test_graph_has_the_functions_of_the_stacks(page: Element, recording: Path, tmp_path: Path) -> None:
    folded = tmp_path / "folded"
    assert main(["perf", str(recording), "--method", "dwarf", "--folded", str(folded)]) == 0
    counts: Counter[str] = Counter()
    whole = 0
    for line in folded.read_text("utf-8").splitlines():
        stack, _, count = line.rpartition(" ")
        counts[stack.split(";")[2]] += int(count)
        whole += int(count)
    drawn = json.loads(page.by_id("result").text)
    (third,) = counts  # all samples of this program are in one function
    assert drawn["frames"][0] == f"all samples: {whole} samples, 100.0%"
    assert f"{third}: {whole} samples, 100.0%" in drawn["frames"]


def test_graph_shows_what_another_method_lacks(page: Element) -> None:
    drawn = json.loads(page.by_id("result").text)
    titles = dict(drawn["compared"])
    lacking = [title for title in titles if title.endswith("by fp 0")]
    assert lacking
    assert all("--more) 100%" in titles[title] for title in lacking)
    assert drawn["at"].startswith(f"{drawn['zoomed']}: ")


def test_tree_adds_up_and_leaves_out_what_cannot_be_seen() -> None:
    deep: Stack = tuple(f"f{number}" for number in range(3000))
    first: Counter[Stack] = Counter({deep: 9_000, ("f0", "other"): 1_000, ("f0", "rare"): 1})
    second: Counter[Stack] = Counter({("f0",): 7})
    nodes = CallTree([first, second]).to_json()
    names = [nodes["texts"][name] for name in nodes["names"]]
    by_name = dict(zip(names, nodes["samples"]))
    assert len(names) == len(nodes["samples"]) == len(nodes["parents"]) == 3002
    assert by_name[""] == by_name["f0"] == [10_001, 7]
    assert by_name["f2999"] == [9_000, 0]
    assert by_name["other"] == [1_000, 0]
    assert "rare" not in by_name
    parents = nodes["parents"]
    assert parents[0] == -1
    assert all(0 <= parent < node for node, parent in enumerate(parents) if node)


def test_links_to_the_page_of_show(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Functions at which stacks end link to the page of their file, if it is in the same folder."""
    assert main(["perf", str(recording), "--json"]) == 0
    blockers = json.loads(capsys.readouterr().out)["blockers"]
    module = next(one["module"] for one in blockers if one["module"].startswith("/"))
    folder = recording.parent / "linked"
    folder.mkdir()
    shown = folder / f"{Path(module).name}.show.html"
    shown.touch()
    assert main(["perf", str(recording), "--html", str(folder / "perf.html")]) == 0
    table = render(folder / "perf.html").by_id("blockers")
    linked = [row.all("td")[3].text for row in table.all("tr")[1:] if row.all("a")]
    assert linked == [row[3] for row in cells(table) if row[3] == module]
    assert all(link.attributes["href"].startswith(f"{shown.name}#") for link in table.all("a"))
