"""The command `lint`: its output, SARIF, baselines, exit statuses, and files that cannot be linted."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest

from sframe_unwind import elf
from sframe_unwind.cli import main
from sframe_unwind.consumers import CONSUMERS
from sframe_unwind.lint.catalogue import RULES
from sframe_unwind.lint.sarif import SCHEMA
from sframe_unwind.sframe.encode import FunctionSpec, TableSpec, describe, encode
from tests.abis.rewrite import overwrite
from tests.elf.objects import run, tools_for
from tests.missing import package_needed
from tests.samples.build import build

CHECKOUT = Path(__file__).resolve().parents[2]


def damaged(folder: Path, name: str = "damaged") -> Path:
    """Return a program in which the first function's size reaches into the second."""
    source, target = build("free_walk", "aarch64", 3), folder / name
    (section,) = elf.load(source)
    spec = describe(section)
    (table,) = spec.tables
    overwrite(Path(shutil.copy(source, target)), encode(spec._replace(tables=(_overlapping(table),))))
    return target


def _overlapping(table: TableSpec) -> TableSpec:
    first, second, *others = sorted(table.functions, key=lambda function: function.start)
    reaching: FunctionSpec = first._replace(size=second.start - first.start + second.size + 4)
    return table._replace(functions=(reaching, second, *others))


def test_what_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = build("free_walk", "aarch64", 3)
    assert main(["lint", str(program)]) == 0
    first, *notes = capsys.readouterr().out.splitlines()
    assert first == f"{program}: spec (manuals of 2.44 to 2.46): accepted whole"
    assert all(line.startswith("  note: SF") for line in notes)
    assert main(["lint", "--for", "linux-user", "--for", "glibc", str(damaged(tmp_path))]) == 1
    out = capsys.readouterr().out
    assert f"{tmp_path}/damaged: linux-user (series v13): accepted with losses: " in out
    refused = f"{tmp_path}/damaged: glibc (glibc-2.43): refused for SF013 version-not-read at .sframe+0x2: "
    assert f"{refused}`backtrace` finds no" in out
    assert "  warning: SF032 fde-overlap at .sframe+0x2c (" in out
    assert "    linux-user: the stack ends here" in out


def test_the_revision_of_each_reader_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["lint", "--help"])
    told = capsys.readouterr().out.splitlines()
    docs = (CHECKOUT / "docs" / "lint-reference.md").read_text(encoding="utf-8").splitlines()
    for name, consumer in CONSUMERS.items():
        (line,) = (line for line in told if line.startswith(f"  {name} "))
        assert consumer.revision in line
        (row,) = (row for row in docs if row.startswith(f"| `{name}` | ") and len(row.split(" | ")) == 5)
        assert consumer.revision in row
    commit = CONSUMERS["linux-user"].source.partition("commit ")[2].split()[0]
    assert any(commit[:12] in row for row in docs)


def test_each_consumer_is_told_what_it_expects(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "--for", "linux-user", "--for", "glibc", str(build("free_walk", "aarch64", 1))]) == 1
    lines = capsys.readouterr().out.splitlines()
    for consumer, version in (("linux-user", 3), ("glibc", 2)):
        at = lines.index(f"  error: SF013 version-not-read at .sframe+0x2: version 1, expected {version}")
        assert lines[at + 1].startswith(f"    {consumer}: ")


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "--json", "--for", "linux-user", str(damaged(tmp_path))]) == 1
    (file,) = json.loads(capsys.readouterr().out)["files"]
    (section,) = file["sections"]
    (profile,) = section["profiles"]
    assert (profile["profile"], profile["outcome"]) == ("linux-user", "accepted with losses")
    assert (profile["revision"], profile["read_from"]) == ("series v13", CONSUMERS["linux-user"].source)
    assert profile["functions_lost"] == len(profile["lost"]) >= 1
    assert profile["bytes_lost"] == sum(loss["bytes"] for loss in profile["lost"]) >= 4
    overlap = next(finding for finding in section["findings"] if finding["rule"] == "SF032")
    assert overlap["name"] == "fde-overlap"
    assert (overlap["offset"], overlap["level"], overlap["known"]) == (0x2C, "warning", False)


def schema() -> dict[str, Any]:
    """Return the JSON schema of SARIF 2.1.0, errata 01.

    ``sarif-schema-2.1.0.json`` is the file of that name which OASIS Open publishes with the standard, at the address in
    its ``id``; OASIS permits copies under its IPR policy.
    """
    package_needed("jsonschema")
    text = (Path(__file__).parent / "sarif-schema-2.1.0.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    assert content["id"] == SCHEMA
    return content


def test_sarif(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The log is valid by the schema of the standard, and has the findings of the text."""
    import jsonschema

    content = schema()
    out = tmp_path / "a folder"
    out.mkdir()
    files = [damaged(out), tmp_path / "missing", build("plt", "amd64", 1)]
    every = [word for name in ("spec", "linux-user", "linux-kernel", "glibc") for word in ("--for", name)]
    assert main(["lint", "--sarif", str(out / "log"), *every, *map(str, files)]) == 2
    capsys.readouterr()
    log = json.loads((out / "log").read_text(encoding="utf-8"))
    jsonschema.Draft4Validator(content).validate(log)
    assert not jsonschema.Draft4Validator(content).is_valid({**log, "version": "2.0.0"})
    (found,) = log["runs"]
    assert [rule["id"] for rule in found["tool"]["driver"]["rules"]] == [rule.id for rule in RULES]
    assert found["invocations"][0]["executionSuccessful"] is False
    assert "missing: No such file" in found["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]
    overlap = next(result for result in found["results"] if result["ruleId"] == "SF032")
    assert found["tool"]["driver"]["rules"][overlap["ruleIndex"]]["name"] == "fde-overlap"
    assert "linux-user (series v13): the stack ends here" in overlap["message"]["text"]
    place = overlap["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"].endswith("/a%20folder/damaged")
    assert place["address"]["fullyQualifiedName"] == ".sframe+0x2c"
    assert {result["level"] for result in found["results"]} == {"error", "warning", "note"}


def test_sarif_of_a_file_whose_name_is_not_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The URI has the bytes of the name (RFC 3986, section 2.1), and leads back to the file."""
    program = Path(shutil.copy(build("free_walk"), tmp_path / os.fsdecode(b"\xff%\n")))
    assert main(["lint", "--sarif", str(tmp_path / "log"), str(program)]) == 0
    capsys.readouterr()
    (found,) = json.loads((tmp_path / "log").read_text(encoding="utf-8"))["runs"]
    assert found["results"]
    for result in found["results"]:
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert uri.endswith("/%FF%25%0A")
        assert unquote_to_bytes(uri) == b"file://" + os.fsencode(program)


def test_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Known findings do not count; new ones do."""
    program, known = damaged(tmp_path), tmp_path / "known.json"
    arguments = ["lint", "--for", "linux-user", str(program)]
    assert main([*arguments, "--write-baseline", str(known)]) == 0
    capsys.readouterr()
    assert main([*arguments, "--baseline", str(known), "--sarif", str(tmp_path / "log")]) == 0
    out = capsys.readouterr().out
    assert "fde-overlap" not in out.partition("known by the baseline: ")[2]
    assert "known by the baseline: " in out
    log = json.loads((tmp_path / "log").read_text(encoding="utf-8"))
    assert all(result["suppressions"] == [{"kind": "external"}] for result in log["runs"][0]["results"])
    assert main([*arguments, "--for", "glibc", "--baseline", str(known)]) == 1
    assert "error: SF013 version-not-read" in capsys.readouterr().out


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"sframe-unwind lint baseline": 2}', "[" * 100_000])
def test_what_is_no_baseline(content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "known.json"
    file.write_text(content, encoding="ascii")
    assert main(["lint", "--baseline", str(file), str(build("free_walk"))]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert line.startswith(f"sframe-unwind: {file}: ")


def test_archives_directories_and_modules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = shutil.copy(build("leaf", "aarch64", 3), tmp_path / "leaf")
    run("ar", "rcs", tmp_path / "lib.a", program)
    run(tools_for("amd64", 3) / "objcopy", "--only-keep-debug", build("leaf"), tmp_path / "leaf.debug")
    assert main(["lint", "--json", str(tmp_path)]) == 0
    files = json.loads(capsys.readouterr().out)["files"]
    assert [file["file"].removeprefix(f"{tmp_path}/") for file in files] == ["leaf", "lib.a(leaf)"]


def test_a_file_without_section_headers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The segment is longer than the section; bytes after the section are not taken for damage."""
    file = tmp_path / "bare"
    content = bytearray(build("free_walk").read_bytes())
    content[0x28:0x30] = bytes(8)  # e_shoff
    content[0x3C:0x40] = bytes(4)  # e_shnum, e_shstrndx
    file.write_bytes(content)
    assert main(["lint", "--json", "--for", "spec", "--for", "linux-user", str(file)]) == 1
    ((section,),) = (found["sections"] for found in json.loads(capsys.readouterr().out)["files"])
    assert [profile["outcome"] for profile in section["profiles"]] == ["accepted", "accepted with losses"]
    assert {finding["rule"] for finding in section["findings"]} >= {"SF004", "SF060"}
    assert "SF007" not in {finding["rule"] for finding in section["findings"]}


def test_files_that_cannot_be_linted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = build("free_walk")
    content, file = good.read_bytes(), tmp_path / "file"
    for size in (0, 1, 63, 64, 1000, len(content) - 100):
        file.write_bytes(content[:size])
        assert main(["lint", str(file)]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert err.startswith(f"sframe-unwind: {file}: ")
    assert main(["lint", str(file), str(good)]) == 2
    out, _ = capsys.readouterr()
    assert out.startswith(f"{good}: spec (manuals of 2.44 to 2.46): accepted whole")
    assert main(["lint", "--write-baseline", str(tmp_path / "no" / "folder"), str(good)]) == 2
    assert "cannot be written: No such file or directory" in capsys.readouterr().err


def test_code_without_fde_is_at_the_function_that_the_finding_names(capsys: pytest.CaptureFixture[str]) -> None:
    """Its address was that of the section, so that `--function main` printed it where main is the first one."""
    program = str(build("plt"))
    main(["lint", "--json", program])
    (section,) = json.loads(capsys.readouterr().out)["files"][0]["sections"]
    (found,) = (one for one in section["findings"] if one["name"] == "code-without-fde")
    assert found["where"].split()[0] == hex(found["address"])
    main(["lint", "--function", "main", program])
    assert "code-without-fde" not in capsys.readouterr().out
