"""The cases in `conformance/`: they are what their descriptions give, and this project's decoder finds their rows."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from lab.readers.conformance import HOME, VERSION, write
from lab.readers.notation import of_rule
from sframe_unwind.errors import FormatError
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import Miss
from tests.schemas import strict


@cache
def index() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HOME / "index.json").read_text(encoding="utf-8"))
    return found


def expected(entry: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HOME / entry["expected"]).read_text(encoding="utf-8"))
    return found


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files that are made, by their paths in a folder."""
    paths = [*folder.glob("cases/**/*"), folder / "index.json", folder / "LICENSE"]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths if path.is_file()}


def test_the_files_are_what_the_descriptions_give(tmp_path: Path) -> None:
    """After a change of `lab/readers/corpus.py` or a new rule of lint: `make conformance`, and another version."""
    assert write(tmp_path) == len(index()["cases"])
    made, kept = contents(tmp_path), contents(HOME)
    assert sorted(made.keys() ^ kept.keys()) == []
    assert [path for path in made if made[path] != kept[path]] == []


def test_the_index_has_all_cases() -> None:
    cases = index()["cases"]
    assert index()["version"] == VERSION
    assert f": {len(cases)} sections, " in (HOME / "README.md").read_text(encoding="utf-8")
    assert sorted(entry["name"] for entry in cases) == sorted(path.name for path in (HOME / "cases").iterdir())
    for entry in cases:
        data = (HOME / entry["section"]).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (entry["size"], entry["sha256"]), entry["name"]
        folder = HOME / "cases" / entry["name"]
        assert (folder / "description.txt").read_text(encoding="utf-8") == f"{entry['description']}\n"
        assert expected(entry)["valid"] is entry["valid"]


@pytest.mark.parametrize("name", ["index", "expected"])
def test_files_have_the_form_of_their_schemas(name: str) -> None:
    schema = json.loads((HOME / "schemas" / f"{name}.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(strict(schema))
    values = [index()] if name == "index" else [expected(entry) for entry in index()["cases"]]
    assert [error.message for value in values for error in validator.iter_errors(value)] == []


def test_the_decoder_finds_the_rows() -> None:
    """It uses nothing but the files, as a decoder in another language would."""
    rows = 0
    for entry in index()["cases"]:
        answers = expected(entry)
        if entry["valid"]:
            section = Section((HOME / entry["section"]).read_bytes(), int(answers["address"], 16))
            for answer in answers["rows"]:
                found = section.lookup(int(answer["pc"], 16))
                row = None if isinstance(found, Miss) else of_rule(found.rule)
                assert row == answer["row"], (entry["name"], answer["pc"])
                rows += answer["row"] is not None
    assert rows > 5000


def test_malformed_sections_are_read_in_part_or_refused() -> None:
    refused = 0
    for entry in index()["cases"]:
        if not entry["valid"]:
            answers = expected(entry)
            try:
                section = Section((HOME / entry["section"]).read_bytes(), int(answers["address"], 16))
                for pc in answers["pcs"]:
                    section.lookup(int(pc, 16))
            except FormatError:
                refused += 1
    assert refused > 30
