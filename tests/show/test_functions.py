"""`verify --function` and `lint --function` report some functions as the report of the whole file has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sframe_unwind.cli import main
from tests.cli.sections import AMD64, Function, elf, row, section
from tests.missing import package_needed
from tests.samples.build import build


def printed(capsys: pytest.CaptureFixture[str], status: int, *arguments: object) -> dict[str, Any]:
    assert main([*map(str, arguments), "--json"]) == status
    (file,) = json.loads(capsys.readouterr().out)["files"]
    result: dict[str, Any] = file
    return result


def test_verify_compares_these_functions(capsys: pytest.CaptureFixture[str]) -> None:
    program = build("plt")
    whole = printed(capsys, 1, "verify", program)
    wrong = [one["address"] for one in whole["disagreements"]]
    stubs = printed(capsys, 1, "verify", program, "--function", f"{wrong[0]:#x}")
    others = [printed(capsys, 0, "verify", program, "--function", name) for name in ("main", "called_back")]
    both = printed(capsys, 0, "verify", program, "--function", "main", "--function", "called_back")
    # The entry of SFrame describes both stubs.
    assert [one["address"] for one in stubs["disagreements"]] == wrong
    assert [one["functions"]["both"] for one in others] == [1, 1]
    assert both["functions"]["both"] == 2
    assert both["addresses_compared"] == sum(one["addresses_compared"] for one in others)
    assert 0 < both["addresses_compared"] < whole["addresses_compared"]
    start = printed(capsys, 0, "verify", program, "--function", "_start")
    assert (start["functions"]["both"], start["functions"]["dwarf_only"]) == (0, 1)
    assert start["dwarf_only"] == whole["dwarf_only"]


def test_verify_checks_these_functions_against_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    package_needed("pyvex")
    program = build("plt")
    whole = printed(capsys, 1, "verify", program, "--against", "code")["code"]
    (finding,) = {one["address"] for one in whole["findings"]}
    names = ("main", "called_back", "through_library", f"{finding:#x}")
    found = [
        printed(capsys, int("0x" in name), "verify", program, "--against", "code", "--function", name)["code"]
        for name in names
    ]
    assert [one["functions"] for one in found] == [1] * len(names)
    assert found[-1]["findings"] == whole["findings"]
    for one in found[:-1]:
        assert one["findings"] == []
        assert one["sframe"]["proved"] == one["instructions"] > 0


def test_lint_reports_these_functions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second function has a row that begins after its end."""
    functions = [
        Function(0x10, 16, [row(AMD64, 0, [8])]),
        Function(0x20, 16, [row(AMD64, 0, [8]), row(AMD64, 20, [16])]),
    ]
    symbols = [(b"good", 0x1010, 16), (b"bad", 0x1020, 16)]
    path = elf(tmp_path / "file", AMD64, section(AMD64, functions, ra=-8), address=0x1000, symbols=symbols)
    whole = printed(capsys, 1, "lint", path)["sections"][0]["findings"]
    assert any(one["address"] == 0x1020 for one in whole)
    found = {}
    for name, start in (("good", 0x1010), ("bad", 0x1020)):
        (one,) = printed(capsys, 1, "lint", path, "--function", name)["sections"]
        assert one["findings"] == [finding for finding in whole if finding["address"] == start]
        found[name] = one["findings"]
    assert len(found["bad"]) > len(found["good"]) > 0


@pytest.mark.parametrize("command", ["verify", "lint"])
def test_a_function_that_is_not_there(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    program = build("plt")
    assert main([command, str(program), "--function", "nowhere"]) == 2
    error = f"sframe-unwind: {program}: nowhere: neither an address nor a symbol of the file\n"
    assert capsys.readouterr().err == error
