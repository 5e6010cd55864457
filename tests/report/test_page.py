"""The tables of all pages, in a real browser."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sframe_unwind.report.page import filled
from tests.browser import NARROW, check_narrow, render

LONG = "std::__detail::_" + "Very_long_name_of_a_template" * 40
ROWS = [["b", 2, "12.5%"], [LONG, None, "9.0%"], ["a", 10, "100.0%"], ["c", 2, None]]
TEMPLATE = """<style>@STYLE@</style></head><body><main><div id="here"></div></main>
<script type="application/json" id="data">@DATA@</script>
<script>
@SCRIPT@
const show = sortable({ box: byId("here"), label: "what", pinned: [["all", 14, "-"]], columns: [
  { title: "name", value: (row) => row[0], code: true },
  { title: "count", value: (row) => row[1] },
  { title: "part", value: (row) => (row[2] === null ? null : parseFloat(row[2])), show: (row) => row[2] ?? "-" },
  { title: "not sorted", show: (row) => make("b", {}, row[0]) },
] });
show(data.rows);
</script></body></html>
"""
CLICKS = """
    const heads = [...document.querySelectorAll("th")], buttons = [...document.querySelectorAll("th button")];
    const state = () => ({
        names: [...document.querySelectorAll("tbody tr")].map((row) => row.firstChild.textContent),
        heads: heads.map((head) => head.ariaSort),
    });
    const seen = [state()];
    for (const button of [1, 1, 0, 0, 2].map((at) => buttons[at])) {
        button.focus();
        document.activeElement.click();
        seen.push(state());
    }
    show(data.rows.slice(0, 2));
    seen.push(state());
    const tabs = buttons.map((one) => [one.tagName, one.tabIndex]);
    return JSON.stringify({ seen, tabs, box: byId("here").tabIndex });
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    template, result = tmp_path / "template.html", tmp_path / "page.html"
    template.write_text(f"<title>test</title>{TEMPLATE}", encoding="utf-8")
    result.write_text(filled(template, {"rows": ROWS}, "1"), encoding="utf-8")
    return result


def test_a_click_on_a_head_sorts(page: Path) -> None:
    shown = render(page, script=CLICKS)
    told = json.loads(shown.by_id("result").text)
    down, up = "descending", "ascending"
    expected = [
        (["b", LONG, "a", "c"], [None, None, None, None]),
        (["a", "b", "c", LONG], [None, down, None, None]),
        (["b", "c", "a", LONG], [None, up, None, None]),
        (["a", "b", "c", LONG], [up, None, None, None]),
        ([LONG, "c", "b", "a"], [down, None, None, None]),
        (["a", "b", LONG, "c"], [None, None, down, None]),
        (["b", LONG], [None, None, down, None]),  # other items, in the order that was chosen
    ]
    assert told["seen"] == [{"names": ["all", *names], "heads": heads} for names, heads in expected]
    assert told["tabs"] == [["BUTTON", 0]] * 3
    assert told["box"] == 0
    assert [head.attributes.get("scope") for head in shown.all("th")] == ["col"] * 4


def test_a_narrow_window(page: Path) -> None:
    check_narrow(page)
    script = """
        const box = byId("here"), [long] = document.querySelectorAll("td.long");
        const lines = long.getBoundingClientRect().height / parseFloat(getComputedStyle(long).lineHeight);
        return JSON.stringify({ lines, scrolls: box.scrollWidth > box.clientWidth });
    """
    told = json.loads(render(page, NARROW, script=script).by_id("result").text)
    assert told["scrolls"]
    assert told["lines"] > 10  # the name is broken, and not the page
