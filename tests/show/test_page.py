"""The page that `show --html` writes, in a real browser: found, opened and read by clicks and keys."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from sframe_unwind import elf
from sframe_unwind.cli import main
from sframe_unwind.report.listing import Listing, Row
from sframe_unwind.report.rule_cells import RuleCells
from sframe_unwind.show.file import ShownFile
from sframe_unwind.show.page import page
from tests.browser import DARK, NARROW
from tests.elf.objects import run, tools_for
from tests.missing import package_needed
from tests.samples.build import build
from tests.show.pages import acted

NASTY = "</script><img src=x onerror=alert(1)>&amp;<!--"
"""A name of a function that would be part of the page if it were not escaped."""


@pytest.fixture(scope="module")
def plt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of a program with a wrong row by GNU ld."""
    package_needed("pyvex")
    path: Path = tmp_path_factory.mktemp("page") / "plt.html"
    assert main(["show", str(build("plt")), "--code", "--html", str(path)]) == 1
    return path


def test_wrong_row_is_found_by_a_click(plt: Path) -> None:
    """The function with disagreements comes first; its sentences are those of the text; each table has a picture."""
    found = acted(
        plt,
        """
        const first = names()[0], counts = cells(document.querySelector("#functions tbody tr"));
        link(first).click();
        await until(() => lines().length);
        const row = document.querySelector("tr.instruction");
        row.dispatchEvent(new PointerEvent("pointerenter"));
        return { first, counts, lines: lines(), hash: location.hash, frame: text("frame"),
                 figures: document.querySelectorAll("#frame figure").length, origins: text("origins") };
        """,
    )
    assert found["first"].endswith("@plt")
    assert int(found["counts"][2]) >= 2
    assert "CFA: rsp + 16 by SFrame, rsp + 8 by DWARF CFI; the code agrees with DWARF" in found["lines"]
    assert "by the code, CFA = rsp + 8; SFrame says rsp + 16" in found["lines"]
    assert re.match(r"0x[0-9a-f]+rsp\+16 +u +c-8rsp\+8 +u +c-8rsp\+8 +u +c-8jmp", found["lines"][0])
    assert found["figures"] == 2
    assert "SFrame: CFA rsp+16, FP u, RA c-8; the code refutes CFA" in found["frame"]
    assert found["frame"].count("refutes") == 1
    assert found["hash"] == "#" + found["first"].replace("@", "%40")
    assert "SFrame: FDE 2 with 1 row, repeats every 8 bytes" in found["origins"]


def test_search_keys_and_links(plt: Path) -> None:
    found = acted(
        plt,
        """
        type("CALLED");
        const searched = names();
        byId("search").dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
        await until(() => lines().length);
        const start = byId("frame").dataset.at, before = location.hash;
        key("ArrowDown"); key("ArrowDown");
        const moved = byId("frame").dataset.at, after = location.hash;
        const deepest = lines().find((line) => line.includes("rsp+32"));
        location.hash = "#called_back+0x" + (parseInt(deepest) - parseInt(start)).toString(16);
        await until(() => document.querySelector("tr.chosen")?.textContent.includes("rsp+32"));
        return { searched, start, before, moved, after, frame: text("frame"), count: text("count"), lines: lines() };
        """,
    )
    assert found["searched"] == ["called_back"]
    assert found["count"] == "1 function of 7"
    assert found["before"] == "#called_back"
    distance = int(found["moved"], 16) - int(found["start"], 16)
    assert found["after"] == f"#called_back+{distance:#x}"
    assert 0 < distance < 16
    pushed = re.findall(r"push %(\w+)", "\n".join(found["lines"]))
    assert "rbx" in pushed
    for label in ("return address", "← rsp", *(f"saved {register}" for register in pushed)):
        assert label in found["frame"]


def test_by_keyboard_alone(plt: Path) -> None:
    """The keys go to what was opened: from the search to the listing, back to the list, and to the next function."""
    found = acted(
        plt,
        """
        const focused = () => document.activeElement.id || document.activeElement.textContent;
        const press = (name) => document.activeElement.dispatchEvent(
            new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
        const places = [];
        const note = (what) => places.push([what, focused(), decodeURIComponent(location.hash)]);
        press("/"); note("slash");
        type("called_b"); press("Enter");
        await until(() => lines().length); note("opened");
        press("ArrowDown"); note("instruction");
        press("/"); press("Escape"); note("cleared");
        press("ArrowDown"); note("first"); press("ArrowDown"); note("second");
        press("ArrowUp"); press("ArrowUp"); note("up");
        press("ArrowDown"); document.activeElement.click();
        await until(() => text("title").startsWith("shared_twice@plt")); note("other");
        const marked = [...document.querySelectorAll("#list [aria-current]")].map((one) => one.textContent);
        press("Escape"); note("back");
        history.back();
        await until(() => text("title").startsWith("called_back")); note("before");
        return { places, marked, listed: names() };
        """,
    )
    first, second, *_ = found["listed"]
    assert found["places"] == [
        ["slash", "search", ""],
        ["opened", "rows", "#called_back"],
        ["instruction", "rows", found["places"][2][2]],
        ["cleared", "search", found["places"][2][2]],
        ["first", first, found["places"][2][2]],
        ["second", second, found["places"][2][2]],
        ["up", "search", found["places"][2][2]],
        ["other", "rows", "#shared_twice@plt"],
        ["back", "shared_twice@plt", "#shared_twice@plt"],
        ["before", "shared_twice@plt", found["places"][2][2]],
    ]
    assert re.fullmatch(r"#called_back\+0x[1-9a-f]", found["places"][2][2])
    assert found["marked"] == ["shared_twice@plt"]


def test_what_a_reader_needs_is_on_the_page(plt: Path) -> None:
    """Each value has its name, the notation is explained, and a link to no function of the page says so."""
    found = acted(
        plt,
        """
        const empty = text("hint"), notation = [...byId("notation").rows].map((row) => row.cells[0].textContent);
        location.hash = "#no_such_function";
        await until(() => text("hint") !== empty);
        const missing = text("hint");
        link("called_back").click();
        await until(() => lines().length);
        const heads = [...document.querySelectorAll("#listing thead tr")]
            .map((row) => cells(row).map((one) => one.split(/ +/)));
        link("through_library").click();
        await until(() => text("title").startsWith("through_library"));
        return { empty, missing, notation, heads, hidden: byId("hint").hidden };
        """,
    )
    assert found["empty"].startswith("Choose a function")
    assert found["missing"] == "The page has no function no_such_function."
    assert found["hidden"]
    assert found["notation"] == ["rsp+16", "c-16", "(rbp-16)", "(rsp+24)+8", "u", "exp", "undef", "-", "!", "?"]
    values = ["CFA", "FP", "RA"]
    assert found["heads"][1] == [[""], values, values, values, [""]]


def test_a_function_is_shown_from_its_start(tmp_path: Path) -> None:
    """Also if the listing before it was scrolled."""
    path = tmp_path / "long.html"
    path.write_text(_with_functions(2, 400), encoding="utf-8")
    found = acted(
        path,
        """
        link("function_0").click();
        await until(() => lines().length);
        scrollTo(0, 3000);
        const scrolled = scrollY;
        link("function_1").click();
        await until(() => text("title").startsWith("function_1"));
        return { scrolled, top: byId("title").getBoundingClientRect().top };
        """,
    )
    assert found["scrolled"] == 3000
    assert -1 < found["top"] < 900


def test_listing_is_that_of_the_text(plt: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each instruction, and each rule where it begins, is in the opened page."""
    program = build("plt")
    assert main(["show", str(program), "through_library", "--json", "--no-source"]) == 0
    (function,) = json.loads(capsys.readouterr().out)["functions"]
    opened = acted(
        plt,
        """
        link("through_library").click();
        await until(() => lines().length);
        return [...document.querySelectorAll("tr.instruction")].map(cells);
        """,
    )
    assert len(opened) == len(function["rows"])
    for cells, row in zip(opened, function["rows"]):
        assert (int(cells[0], 16), cells[-1]) == (row["address"], row["text"])
        for title, shown in zip(("SFrame", "DWARF CFI", "code"), cells[1:-1]):
            rule = row.get("rules", {}).get(title)
            assert shown.split() == (list(rule.values()) if rule else [])


@pytest.mark.parametrize(("flags", "back"), [((), "rgb(255, 255, 255)"), ((DARK,), "rgb(20, 23, 28)")])
def test_a_narrow_window(plt: Path, flags: tuple[str, ...], back: str) -> None:
    """The page is as wide as the window, wider parts scroll apart, and the picture is on the screen."""
    found = acted(
        plt,
        """
        link("called_back").click();
        await until(() => lines().length);
        key("ArrowDown");
        const frame = byId("frame").getBoundingClientRect();
        const root = document.documentElement;
        return { window: root.clientWidth, page: root.scrollWidth,
                 overflow: getComputedStyle(byId("rows")).overflowX,
                 back: getComputedStyle(document.body).backgroundColor,
                 seen: frame.height > 20 && frame.top >= 0 && frame.bottom <= innerHeight + 1 };
        """,
        NARROW,
        *flags,
    )
    assert found == {"window": found["window"], "page": found["window"], "overflow": "auto", "back": back, "seen": True}
    assert found["window"] <= 500


def _with_functions(count: int, instructions: int) -> str:
    """Return a page of functions of one-byte instructions."""
    cells = RuleCells("rsp+8", "u", "c-8")
    with elf.opened(build("plt")) as binary:
        file = ShownFile(binary)
        (part, *_) = file.functions.all()
        rows = [Row(part.start + at, b"\x90", "nop", (cells, cells), 3 if not at else 0) for at in range(instructions)]
        listings = (
            (
                part,
                Listing(
                    name=f"function_{n}",
                    section=".text",
                    start=part.start,
                    size=instructions,
                    relative=False,
                    columns=("SFrame", "DWARF CFI"),
                    data=("", ""),
                    parts=rows,
                ),
            )
            for n in range(count)
        )
        return page("many", file, listings, "0")


def test_many_functions(tmp_path: Path) -> None:
    """A page of 20,000 functions shows 100 at first, and finds one without showing the others."""
    path = tmp_path / "many.html"
    path.write_text(_with_functions(20_000, 64), encoding="utf-8")
    found = acted(
        path,
        """
        const first = names().length;
        type("function_19999");
        const one = names();
        link("function_19999").click();
        await until(() => lines().length);
        return { first, one, lines: lines().length, read: blocks.size };
        """,
    )
    assert found == {"first": 101, "one": ["function_19999"], "lines": 64, "read": 1}


def test_names_are_text(tmp_path: Path) -> None:
    source, file = tmp_path / "names.s", tmp_path / "names.o"
    quoted = NASTY.replace('"', '\\"')
    source.write_text(
        f'"{quoted}": .cfi_startproc\nnop\n.cfi_endproc\n.type "{quoted}", @function\n.size "{quoted}", 1\n'
    )
    run(tools_for("amd64", 3) / "as", "--gsframe", "-o", file, source)
    path = tmp_path / "names.html"
    assert main(["show", str(file), "--html", str(path)]) == 0
    found = acted(
        path,
        """
        const [name] = names();
        link(name).click();
        await until(() => lines().length);
        return { name, images: document.images.length, title: text("title") };
        """,
    )
    assert found == {"name": NASTY, "images": 0, "title": f"{NASTY}, .text+0x0, 1 byte"}


def test_the_page_needs_nothing_else(plt: Path) -> None:
    text = plt.read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    assert not re.search(r"https?:|\bsrc=|href=|@import|url\(", text)
