"""The file for speedscope, compared with the format in its documentation.

The facts are those of ``src/lib/file-format-spec.ts`` of https://github.com/jlfwong/speedscope (commit 3613918), from
which speedscope makes its JSON schema.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sframe_unwind.cli import main
from tests.missing import package_needed
from tests.perf import programs

_NUMBER, _TEXT = {"type": "number"}, {"type": "string"}
_UNITS = ("none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes")


def record_of(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    """Return the schema of an object without other properties."""
    properties = {**required, **optional}
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def list_of(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


FRAME = record_of({"name": _TEXT}, file=_TEXT, line=_NUMBER, col=_NUMBER)
SAMPLED = record_of(
    {
        "type": {"const": "sampled"},
        "name": _TEXT,
        "unit": {"enum": list(_UNITS)},
        "startValue": _NUMBER,
        "endValue": _NUMBER,
        "samples": list_of(list_of({"type": "integer", "minimum": 0})),
        "weights": list_of(_NUMBER),
    }
)
FILE = record_of(
    {
        "$schema": {"const": "https://www.speedscope.app/file-format-schema.json"},
        "shared": record_of({"frames": list_of(FRAME)}),
        "profiles": list_of(SAMPLED),
    },
    name=_TEXT,
    activeProfileIndex=_NUMBER,
    exporter=_TEXT,
)


def folded(text: str) -> dict[str, int]:
    return {stack: int(count) for stack, _, count in (line.rpartition(" ") for line in text.splitlines())}


def test_the_file_has_speedscopes_form_and_the_stacks_of_the_folded_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package_needed("jsonschema")
    import jsonschema

    path, lines = tmp_path / "perf.speedscope.json", tmp_path / "folded"
    recording = programs.record(programs.sorting(), tmp_path)
    methods = ["fp", "sframe", "dwarf"]
    written = ["--speedscope", str(path), "--folded", str(lines)]
    assert main(["perf", str(recording), "--method", ",".join(methods), *written]) == 0
    capsys.readouterr()
    made = json.loads(path.read_text("utf-8"))
    validator = jsonschema.Draft7Validator(FILE)
    validator.validate(made)
    for missing in ("shared", "profiles"):
        assert not validator.is_valid({key: value for key, value in made.items() if key != missing})
    names = [frame["name"] for frame in made["shared"]["frames"]]
    stacks: dict[str, int] = {}
    for profile in made["profiles"]:
        assert len(profile["samples"]) == len(profile["weights"])
        assert profile["endValue"] - profile["startValue"] == sum(profile["weights"])
        for sample, weight in zip(profile["samples"], profile["weights"]):
            stacks[";".join([profile["name"], *(names[at] for at in sample)])] = weight
    assert [profile["name"] for profile in made["profiles"]] == methods
    assert stacks == folded(lines.read_text("utf-8"))
