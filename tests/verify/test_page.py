"""The page that `verify --html` writes, in a real browser."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from sframe_unwind.cli import main
from sframe_unwind.elf.section_addresses import FileAddress
from sframe_unwind.verify import Plan, verify
from sframe_unwind.verify.page import page
from sframe_unwind.verify.verdict import Function, Outcome, Sizes, Verdict, Words
from tests.browser import DARK, PIXELS, Element, check_narrow, render
from tests.code.assembled import assemble
from tests.elf.objects import run, tools_for
from tests.missing import package_needed
from tests.pairing import paired
from tests.samples.build import build
from tests.verify.orc_source import FUNCTION, ORC

NASTY = "</script><img src=x onerror=alert(1)>&amp;<!--"
"""A name, of a function or of a file, that would be part of the page if it were not escaped."""

FUNCTIONS = 20_000


def written(tmp_path: Path, *files: object, status: int = 1) -> Path:
    """Write the page for some files, check the exit status, and return the path of the page."""
    result = tmp_path / "page.html"
    assert main(["verify", "--html", str(result), *map(str, files)]) == status
    return result


def rows(table: Element) -> list[list[str]]:
    """Return the cells of a table's rows, without the heads."""
    return [[cell.text.strip() for cell in row.all("td")] for row in table.all("tr") if row.all("td")]


def test_what_the_page_says_is_what_verify_says(tmp_path: Path) -> None:
    files = [build("plt"), build("realign", version=2), build("leaf", "aarch64")]
    verdicts = [verify(path) for path in files]
    missing = tmp_path / "missing"
    shown = render(written(tmp_path, *files, missing, status=2))
    functions = [function for verdict in verdicts for function in verdict.functions]
    wrong = [function for function in functions if function.outcome is Outcome.DISAGREES]
    compared = sum(verdict.addresses_compared for verdict in verdicts)
    differences = [entry for verdict in verdicts for entry in verdict.disagreements]
    assert shown.by_id("verdict").text == (
        f"3 files, {sum(verdict.both for verdict in verdicts)} functions in both, {compared} addresses compared:"
        f" {len(differences)} disagreements in {len(wrong)} functions"
    )
    assert f"{missing}: No such file or directory" in shown.by_id("failures").text
    assert int(shown.by_id("map").attributes["data-cells"]) == len(functions) + len(files)
    assert shown.by_id("wrong-heading").text == "Disagreements"
    (kind,) = rows(shown.by_id("kinds"))
    assert kind == ["cfa", "rsp + 16", "rsp + 8", str(len(differences)), str(len(wrong))]
    listed = rows(shown.by_id("functions"))
    assert [row[0] for row in listed] == [function.name or f"({function.spot.section})" for function in functions]
    for row, function in zip(listed, functions):
        assert row[1].startswith(function.outcome.value)
        assert function.reason in row[1]
        assert row[2] == str(function.size)
        assert row[3].endswith(f" {function.spot}")
    sizes = {row[0]: row[1:5] for row in rows(shown.by_id("sizes"))}
    for verdict in verdicts:
        label = next(name for name in sizes if verdict.file.endswith(name))
        found = [int(number.replace(",", "")) for number in sizes[label]]
        assert found == [verdict.sizes.code, *verdict.sizes[:3]]


def columns(*rules: Words) -> list[str]:
    """Return the values of rules in the order of `show`."""
    return [text for rule in rules for text in (rule.cfa, rule.fp, rule.ra)]


def test_both_tables_side_by_side(tmp_path: Path) -> None:
    program = build("plt_ibt", version=1)
    lines = [line for function in verify(program).functions for line in function.lines]
    shown = render(written(tmp_path, program)).by_id("disagreements")
    found = rows(shown)
    assert [row[1:] for row in found] == [columns(line.sframe, line.dwarf) for line in lines]
    marked = [cell.text for cell in shown.all("td") if "wrong" in cell.attributes.get("class", "")]
    assert marked == [text for line in lines for text in (line.sframe.cfa, line.dwarf.cfa) if line.differs]


def with_orc(folder: Path) -> Path:
    """Return a file whose ORC has a wrong value at one address."""
    return assemble("amd64", ORC + FUNCTION.format(pushed=24, bp=-16), folder / "function.o")


def test_orc_alone(tmp_path: Path) -> None:
    """The page shows the disagreements of ORC too: they alone make the exit status 1."""
    file, result = with_orc(tmp_path), tmp_path / "page.html"
    assert main(["verify", "--against", "orc", "--html", str(result), str(file)]) == 1
    shown = render(result)
    assert shown.by_id("heading").text == "ORC against SFrame"
    assert shown.by_id("verdict").text == (
        "1 file; 1 function in ORC and SFrame, 1 in ORC only, 0 in SFrame only; 3 addresses compared, 1 disagreement"
    )
    assert shown.by_id("verdict").attributes["class"] == "bad"
    assert rows(shown.by_id("orc-kinds")) == [["cfa", "rsp + 24", "rsp + 16", "1", "1"]]
    (found,) = rows(shown.by_id("orc-disagreements"))
    assert found == ["function+0x1", "cfa", "rsp + 24", "rsp + 16", "function.o .text+0x1"]
    assert rows(shown.by_id("orc-only")) == [["assembly", "ORC", "1", "function.o .text+0x8"]]
    for part in ("coverage", "comparison", "all"):
        assert "hidden" in shown.by_id(part).attributes
    check_narrow(result)


def test_orc_as_a_third_table(tmp_path: Path) -> None:
    file, result = with_orc(tmp_path), tmp_path / "page.html"
    against = [part for table in ("dwarf", "orc", "code") for part in ("--against", table)]
    assert main(["verify", *against, "--html", str(result), str(file)]) == 1
    verdict = verify(file, Plan(dwarf=True, orc=True, code=True))
    shown = render(result)
    assert shown.by_id("heading").text == "SFrame against DWARF CFI"
    said = shown.by_id("verdict").text
    assert said.startswith("1 file, 1 function in both, 3 addresses compared: no disagreements; 1 function in ORC and ")
    assert said.endswith("; ORC 3 proved, 2 wrong, 0 unknown")
    (line,) = [line for function in verdict.functions for line in function.lines]
    assert verdict.code is not None
    assert line.orc is not None
    assert line.code is not None
    assert (line.orc, line.code) == (Words("rsp + 24", "", ""), Words(verdict.code.findings[0].code, "", ""))
    (found,) = rows(shown.by_id("disagreements"))
    assert found[1:] == columns(line.sframe, line.dwarf, line.orc, line.code)
    cells = shown.by_id("disagreements").all("td")
    marked = [cell.text for cell in cells if "wrong" in cell.attributes.get("class", "")]
    assert "rsp + 24" in marked
    assert rows(shown.by_id("kinds")) == [["cfa", "", "", "rsp + 24", "1", "1"]]
    ((*_, by_code, _, _),) = rows(shown.by_id("orc-kinds"))
    assert by_code == "the code agrees with SFrame"
    for part in ("coverage", "comparison", "all", "orc"):
        assert "hidden" not in shown.by_id(part).attributes


def test_orc_that_agrees(tmp_path: Path) -> None:
    file = assemble("amd64", ORC + FUNCTION.format(pushed=16, bp=-16), tmp_path / "function.o")
    result = tmp_path / "page.html"
    assert main(["verify", "--against", "orc", "--html", str(result), str(file)]) == 0
    shown = render(result)
    assert shown.by_id("verdict").text.endswith("; 3 addresses compared, no disagreements")
    assert shown.by_id("verdict").attributes["class"] == "good"
    assert shown.by_id("orc-kinds").text == "None."


def test_orc_that_a_baseline_has(tmp_path: Path) -> None:
    file, result, known = with_orc(tmp_path), tmp_path / "page.html", tmp_path / "known.json"
    command = ["verify", "--against", "orc"]
    assert main([*command, "--write-baseline", str(known), str(file)]) == 0
    assert main([*command, "--baseline", str(known), "--html", str(result), str(file)]) == 0
    shown = render(result)
    assert shown.by_id("verdict").text.endswith("; known by the baseline: 1 finding")
    assert shown.by_id("verdict").attributes["class"] == "good"


def test_tables_that_were_only_compared_with_the_code(tmp_path: Path) -> None:
    """The page does not say that they agree with each other."""
    package_needed("pyvex")
    result = tmp_path / "page.html"
    assert main(["verify", "--against", "code", "--html", str(result), str(build("plt"))]) == 1
    shown = render(result)
    assert shown.by_id("heading").text == "Unwind tables against the code"
    assert re.match(r"1 file; code of \d+ instructions: 1 finding; SFrame ", shown.by_id("verdict").text)


def test_what_is_wrong_with_a_whole_file(tmp_path: Path) -> None:
    problem, sizes = (
        "CIE at 0x0: version 9",
        Sizes(sframe=1, eh_frame=2, eh_frame_hdr=3, debug_frame=0, code=16, not_described=0),
    )
    verdict = Verdict(
        file="whole",
        functions=(),
        addresses_compared=0,
        disagreements=(),
        sizes=sizes,
        problems=(problem,),
        loading=("its segments overlap",),
    )
    result = tmp_path / "page.html"
    result.write_text(page([verdict], [], "0"), encoding="utf-8")
    shown = render(result)
    assert [item.text for item in shown.by_id("problems").all("li")] == [
        "whole: CFI that cannot be read: CIE at 0x0: version 9",
        "whole: cannot be loaded: its segments overlap",
    ]
    assert shown.by_id("verdict").attributes["class"] == "bad"


@pytest.mark.parametrize(("flags", "back"), [((), "rgb(255, 255, 255)"), ((DARK,), "rgb(20, 23, 28)")])
def test_areas_are_code_sizes(tmp_path: Path, flags: tuple[str, ...], back: str) -> None:
    """The areas are counted in pixels, in light and dark colours; labels and gaps between cells take some."""
    program = build("realign", version=2)
    verdict = verify(program)
    outcomes = list(Outcome)
    areas = [sum(each.size for each in verdict.functions if each.outcome is outcome) for outcome in outcomes]
    # The last two colours are those of verdicts by the code, which was not checked.
    areas += [verdict.sizes.not_described, 0, 0]
    shown = render(written(tmp_path, program), *flags, script=PIXELS)
    pixels = json.loads(shown.by_id("result").text)
    assert pixels["back"] == back
    assert sum(pixels["found"]) > 0.9 * pixels["all"]
    for found, area in paired(pixels["found"], areas):
        assert found / sum(pixels["found"]) == pytest.approx(area / sum(areas), abs=0.02)
        assert (found > 0) == (area > 0)


def test_search_filter_and_choice(tmp_path: Path) -> None:
    script = """
        const cells = () => Number(byId("map").dataset.cells);
        const all = cells();
        const pick = (cell) => drawn.find((entry) => entry[4] === cell);
        const wrong = functions.find((cell) => cell.outcome === DISAGREES), [x, y, w, h] = pick(wrong);
        const box = byId("map").getBoundingClientRect();
        const middle = { clientX: box.left + x + w / 2, clientY: box.top + y + h / 2 };
        byId("map").dispatchEvent(new MouseEvent("click", middle));
        const chosen = byId("chosen").textContent;
        byId("search").value = "Aligned_";
        byId("search").dispatchEvent(new Event("input"));
        const found = [cells(), byId("functions").textContent];
        byId("search").value = "";
        byId("search").dispatchEvent(new Event("input"));
        byId("legend").firstChild.click();
        const fewer = cells();
        return JSON.stringify({ all, chosen, found, fewer });
    """
    program = build("realign", version=2)
    verdict = verify(program)
    result = json.loads(render(written(tmp_path, program), script=script).by_id("result").text)
    assert result["all"] == len(verdict.functions) + 1
    assert "(.plt.got)" in result["chosen"]
    assert "rsp + 16" in result["chosen"]
    assert result["found"][0] == sum("aligned_" in function.name for function in verdict.functions) == 2
    assert "CFA r10, for which version 2 has no words" in result["found"][1]
    assert result["fewer"] == result["all"] - verdict.count(Outcome.AGREES)


def test_a_narrow_window(tmp_path: Path) -> None:
    check_narrow(written(tmp_path, build("plt"), build("realign", version=2)))


def test_names_are_text(tmp_path: Path) -> None:
    source, file = tmp_path / "names.s", tmp_path / "<img src=x onerror=alert(2)>&.o"
    quoted = NASTY.replace('"', '\\"')
    source.write_text(
        f'"{quoted}": .cfi_startproc\nnop\n.cfi_endproc\n.type "{quoted}", @function\n.size "{quoted}", 1\n',
        encoding="ascii",
    )
    run(tools_for("amd64", 3) / "as", "--gsframe", "-o", file, source)
    result = written(tmp_path, file, status=0)
    shown = render(result)
    assert [row[0] for row in rows(shown.by_id("functions"))] == [NASTY]
    assert file.name in shown.by_id("sizes").text
    assert shown.all("img") == []
    assert len(shown.all("script")) == 2


def test_the_page_needs_nothing_else(tmp_path: Path) -> None:
    text = written(tmp_path, build("plt")).read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    assert not re.search(r"https?:|\bsrc=|href=|@import|url\(", text)


def with_functions(folder: Path, count: int) -> Path:
    """Return the page for one file with many functions."""
    functions = tuple(
        Function(
            spot=FileAddress(".text", 16 * n, False),
            size=1 + n % 97,
            name=f"function_{n}",
            outcome=list(Outcome)[n % 5],
            reason="",
            lines=(),
        )
        for n in range(count)
    )
    verdict = Verdict(
        "many",
        functions,
        count,
        (),
        Sizes(sframe=1, eh_frame=2, eh_frame_hdr=3, debug_frame=0, code=16 * count, not_described=0),
    )
    result = folder / "page.html"
    result.write_text(page([verdict], [], "0"), encoding="utf-8")
    return result


def test_more_functions_than_a_call_takes_arguments(tmp_path: Path) -> None:
    """Chromium's limit is near 124,000 arguments; beyond it the page was once empty."""
    shown = render(with_functions(tmp_path, 130_000))
    assert shown.by_id("verdict").text.startswith("1 file, 52,000 functions in both, ")
    assert len(rows(shown.by_id("functions"))) == 101


def test_many_functions(tmp_path: Path) -> None:
    """20,000 functions are drawn at once, and listed page by page."""
    result = with_functions(tmp_path, FUNCTIONS)
    assert result.stat().st_size < 60 * FUNCTIONS
    shown = render(result, script="redraw(); return 'drawn again'")
    assert shown.by_id("result").text == "drawn again"
    assert int(shown.by_id("map").attributes["data-cells"]) == FUNCTIONS
    assert len(rows(shown.by_id("functions"))) == 101


def test_a_page_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "missing" / "page.html"
    assert main(["verify", "--html", str(target), str(build("free_walk"))]) == 2
    assert capsys.readouterr().err == f"sframe-unwind: {target}: cannot be written: No such file or directory\n"
