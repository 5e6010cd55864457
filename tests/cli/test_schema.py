"""The schemas of JSON outputs; `tests/schemas.py` checks the outputs of all commands that tests run against them."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from sframe_unwind import cli
from sframe_unwind.cli import main, schema
from sframe_unwind.elf.section_addresses import FileAddress
from sframe_unwind.verify.orc_report import OrcDisagreement, OrcReport
from sframe_unwind.verify.terms import Gap, Side
from sframe_unwind.verify.verdict import Disagreement, Function, Outcome
from tests.schemas import check_value, strict

ELSEWHERE = {"compare": "a command of the debuggers", "survey": "its option is --json-lines"}
SPOT = FileAddress("", 0x1000, False)
RARE = [
    (
        "verify",
        "disagreement",
        Disagreement(spot=SPOT, function="f", what="cfa", sframe="r7+8", dwarf="r7+16", code=Side.DWARF).to_json(),
    ),
    (
        "verify",
        "function",
        Function(
            spot=SPOT, size=8, name="f", outcome=Outcome.IN_PART, reason="", lines=(), gaps=(Gap(SPOT, 8),)
        ).to_json(),
    ),
    (
        "verify",
        "orc",
        OrcReport(
            table="sframe",
            both=1,
            addresses_compared=2,
            disagreements=(
                OrcDisagreement(
                    pc=0x1000, spot=SPOT, function="f", what="ra", orc="c-8", other="c-16", code=Side.NEITHER
                ),
            ),
            orc_only=(("g", Gap(SPOT, 4)),),
            other_only=(),
        ).to_json(),
    ),
]


def parts(value: Any) -> Iterator[dict[str, Any]]:
    """Yield all objects in a JSON value."""
    if isinstance(value, dict):
        yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from parts(one)


def loaded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(schema.text(name))
    return found


def test_every_command_with_json_has_a_schema() -> None:
    with_json = set()
    for name, command in cli.COMMANDS.items():
        if name not in cli.DEBUGGERS:
            parser = argparse.ArgumentParser()
            command.add_arguments(parser)
            with_json |= {name for action in parser._actions if "--json" in action.option_strings}
    assert with_json | set(ELSEWHERE) == set(schema.NAMES)


@pytest.mark.parametrize("name", schema.NAMES)
def test_a_schema_is_valid_and_versioned(name: str) -> None:
    whole = loaded(name)
    jsonschema.Draft202012Validator.check_schema(whole)
    assert whole["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert re.fullmatch(rf"urn:sframe-unwind:schema:{name}:[1-9]\d*", whole["$id"])


@pytest.mark.parametrize("name", schema.NAMES)
def test_a_schema_describes_each_member(name: str) -> None:
    whole = loaded(name)
    objects = [part for part in parts(whole) if part.get("type") == "object" and "required" in part]
    assert objects
    for part in objects:
        assert set(part["required"]) <= part["properties"].keys()
        assert [
            key for key, value in part["properties"].items() if not ("description" in value or "$ref" in value)
        ] == []
    used = {part["$ref"] for part in parts(whole) if isinstance(part.get("$ref"), str)}
    assert used == {f"#/$defs/{key}" for key in whole["$defs"]}


@pytest.mark.parametrize("name", schema.NAMES)
def test_a_schema_is_printed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", name]) == 0
    assert json.loads(capsys.readouterr().out) == loaded(name)


def test_names_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert capsys.readouterr().out.split() == list(schema.NAMES)


def test_a_name_without_a_schema_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["schema", "gdb"])
    assert "'gdb'" in capsys.readouterr().err


def test_what_a_later_version_adds_is_valid() -> None:
    finding = {"about": "GDB", "name": "version", "works": None, "found": "18", "remedy": "", "since": "0.3"}
    jsonschema.validate({"version": "0.3", "findings": [finding]}, loaded("doctor"))


@pytest.mark.parametrize(
    "changed", [{"works": "yes"}, {"found": None}, {"added": 1}], ids=["another type", "null", "a member more"]
)
def test_a_wrong_output_fails_a_test(changed: dict[str, Any]) -> None:
    finding = {"about": "GDB", "name": "version", "works": None, "found": "18", "remedy": ""}
    check_value("doctor", {"version": "0.3", "findings": [finding]})
    with pytest.raises(pytest.fail.Exception, match=r"schema doctor: \$\.findings\[0\]"):
        check_value("doctor", {"version": "0.3", "findings": [{**finding, **changed}]})


def test_an_output_of_a_command_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sframe_unwind.cli.doctor.__version__", 1)
    monkeypatch.setattr("sframe_unwind.cli.doctor.examine", tuple)
    with pytest.raises(pytest.fail.Exception, match=r"schema doctor: \$\.version"):
        main(["doctor", "--json"])


@pytest.mark.parametrize(("name", "definition", "value"), RARE)
def test_values_that_commands_of_the_tests_do_not_print(name: str, definition: str, value: dict[str, Any]) -> None:
    check_value(name, value, definition)


def test_a_file_that_cannot_be_examined(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The hook of `tests/conftest.py` checks both outputs."""
    missing = str(tmp_path / "missing")
    for name in ("lint", "verify"):
        assert main([name, "--json", missing]) == 2
        (failure,) = json.loads(capsys.readouterr().out)["failures"]
        assert failure["file"] == missing


def test_only_objects_with_named_members_become_strict() -> None:
    assert strict({"type": "object", "additionalProperties": {"type": "string"}}) == {
        "type": "object",
        "additionalProperties": {"type": "string"},
    }
