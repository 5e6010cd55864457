"""The output of the command: text, the page in a real browser, CSV and JSON lines, compared with the database."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from sframe_unwind import __version__
from sframe_unwind.cli import main
from sframe_unwind.survey.page import page
from sframe_unwind.survey.rows import SURVEYED, FileRow, FindingRow, KindRow, ProfileRow, Surveyed, SurveyPlan
from sframe_unwind.survey.store import Store
from sframe_unwind.survey.tables import TABLES
from tests import schemas
from tests.browser import check_narrow, render
from tests.samples.build import build
from tests.survey.programs import plain_program, tar
from tests.survey.stores import query

NASTY = "</script><img src=x onerror=alert(1)>&amp;<!--"
FILES = 5000


@pytest.fixture
def database(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Return a survey of three programs, one of which has disagreements, under names with special characters."""
    package = tmp_path / "some.tar"
    package.write_bytes(tar({NASTY: build("plt").read_bytes(), "two": plain_program(), "text": b"text\n"}))
    result = tmp_path / "some.db"
    assert main(["survey", "--store", str(result), "--convert", str(package), str(build("leaf", "aarch64"))]) == 1
    capsys.readouterr()
    return result


def test_text(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["survey", "--store", str(database)]) == 1
    told = capsys.readouterr().out
    assert re.search(r"^  sframe +[\d,]+ +[\d,]+ +[\d,]+$", told, re.MULTILINE)
    assert "not an ELF file  1 " in told
    columns = next(line.split() for line in told.splitlines() if line.split()[:1] == ["disagreements"])
    differ = query(database, "SELECT sum(disagreements) FROM files")[0][0]
    assert sum(map(int, columns[1:])) == differ > 0


def test_tables_have_what_the_database_has(database: Path, tmp_path: Path) -> None:
    folders = tmp_path / "csv", tmp_path / "lines"
    main(["survey", "--store", str(database), "--csv", str(folders[0]), "--json-lines", str(folders[1])])
    for table in TABLES:
        with (folders[0] / f"{table.name}.csv").open(newline="", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
        lines = [json.loads(line) for line in (folders[1] / f"{table.name}.jsonl").read_text("utf-8").splitlines()]
        for line in lines:
            schemas.check_value("survey", line, table.name)
        assert rows == [{name: "" if cell is None else str(cell) for name, cell in line.items()} for line in lines]
        if table.name in ("kinds", "findings", "profiles", "paths"):
            assert len(rows) == query(database, f"SELECT count(*) FROM {table.name}")[0][0]
    files = {row["path"]: row for row in lines_of(folders[1] / "files.jsonl")}
    for path, sframe, eh_frame in query(database, "SELECT path, sframe, eh_frame FROM files JOIN paths USING (digest)"):
        assert files[path]["ratio"] == round(sframe / eh_frame, 3)
    assert [row["machine"] for row in lines_of(folders[1] / "machines.jsonl")] == ["aarch64", "amd64", "amd64"]


def lines_of(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_page(database: Path, tmp_path: Path) -> None:
    result = tmp_path / "page.html"
    main(["survey", "--store", str(database), "--html", str(result)])
    assert not re.search(r"https?:|\bsrc=[^x]|href=|@import|url\(", result.read_text("utf-8"))
    script = """
        const rows = () => [...document.querySelectorAll("#files tbody tr")].map((row) => row.firstChild.textContent);
        const before = rows();
        const column = [...document.querySelectorAll("#files th button")].find((one) => one.textContent === "sframe");
        column.click();
        const largest = rows();
        column.click();
        return JSON.stringify({ before, largest, smallest: rows() });
    """
    check_narrow(result)
    shown = render(result, script=script)
    orders = json.loads(shown.by_id("result").text)
    by_size = query(database, "SELECT path FROM files JOIN paths USING (digest) ORDER BY sframe DESC")
    assert orders["largest"] == [path for (path,) in by_size] == orders["smallest"][::-1]
    assert any(NASTY in path for path in orders["before"])
    assert shown.all("img") == []
    assert len(shown.all("script")) == 3, "that of the page, its data, and that of the test"
    assert len(shown.by_id("plots").all("svg")) == 6, "three for each machine"
    compared, differ = query(database, "SELECT sum(addresses), sum(disagreements) FROM files")[0]
    told = shown.by_id("verdict").text
    assert told.startswith("3 files, ")
    assert f" {compared} addresses compared: {differ} disagreements" in told
    assert told.endswith("not looked at: 1 file")
    skipped = shown.by_id("skipped_reasons").all("tr")[1].text
    assert skipped.startswith("not an ELF file1")


def test_page_of_many_files(tmp_path: Path) -> None:
    """5,000 files are searched and sorted; only the browser's time limit catches a hang."""
    store = Store(str(tmp_path / "some.db"))
    run = store.begin(SurveyPlan(), ["root"], "")
    for number in range(FILES):
        row = FileRow(SURVEYED, machine="amd64", bytes=number, code=number + 1, sframe=number, eh_frame=5000)
        finding = FindingRow(
            judge="code",
            kind="cfa",
            level="error",
            section=".text",
            address=number,
            function=f"function_{number}",
            table="sframe",
            says="rsp + 8",
            expected="",
        )
        profile = ProfileRow("spec", "accepted", "", 0, 0)
        found = Surveyed(row, (KindRow("tables", "agrees", "", 1, number),), (finding,), (profile,))
        store.add(run, f"{number:064x}", found)
        store.add_path(run, "root", f"root/file{number}", f"{number:064x}")
    store.end(run, ["root"])
    result = tmp_path / "page.html"
    result.write_text(page(store, run.plan, __version__), encoding="utf-8")
    store.close()
    assert result.stat().st_size < 500 * FILES
    script = """
        const all = [...document.querySelectorAll("input[type=search]")];
        for (const one of all) { one.value = "file4321"; one.dispatchEvent(new Event("input")); }
        const found = document.querySelectorAll("#files tbody tr").length;
        for (const one of document.querySelectorAll("#files th button")) one.click();
        return found;
    """
    shown = render(result, script=script)
    assert shown.by_id("result").text == "1"
    assert shown.by_id("verdict").text.startswith("5,000 files, ")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["some"], "survey: --store is needed (try sframe-unwind survey --help)"),
        (["--store", "no.db"], "no.db: no such database"),
        (["--store", "text", "some"], "text: file is not a database"),
        (["--diff", "no.db", "no.db"], "no.db: no such database"),
        (["--store", "new.db", "--html", "no/page.html", "some"], "no/page.html: cannot be written: No such file"),
    ],
)
def test_errors(
    arguments: list[str],
    error: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("some text that is too long for an empty database\n" * 20, encoding="ascii")
    Path("some").write_bytes(plain_program())
    assert main(["survey", *arguments]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"sframe-unwind: {error}")
    assert told.count("\n") == 1


def test_paths_that_do_not_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are named, and the other paths are surveyed."""
    monkeypatch.chdir(tmp_path)
    Path("some").write_bytes(plain_program())
    Path("link").symlink_to("nowhere")
    assert main(["survey", "--store", "new.db", "mistyped", "some", "link"]) == 2
    out, err = capsys.readouterr()
    assert err == "sframe-unwind: mistyped: No such file or directory\n"
    assert "  files               1" in out.splitlines()
