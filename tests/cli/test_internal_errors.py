"""A bug of this package is reported as one, whichever part of which command it is in."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import NoReturn

import pytest

from sframe_unwind.cli import main
from sframe_unwind.elf import ElfBinary
from sframe_unwind.survey.producers import Producers, producers_of
from tests.fuzz.file_seeds import content_of, program
from tests.samples.build import build

_BUG = "internal error: AttributeError: planted"

_READING = (
    "sframe_unwind.elf.binary.open_file",
    "sframe_unwind.elf._reader.Reader._headers",
    "sframe_unwind.elf._reader.Reader.read",
)
"""Steps that every command takes to read a file."""
_TABLES = (
    "sframe_unwind.elf.relocation.Relocations.__init__",
    "sframe_unwind.sframe.header.read",
    "sframe_unwind.sframe.fde.decode",
)
_CFI = (
    "sframe_unwind.elf.cfi.FileCfi._add",
    "sframe_unwind.cfi.records.Fde.decode",
    "sframe_unwind.cfi.rules.CfiRules.rows",
)
_NAMES = ("sframe_unwind.elf.section_addresses.Layout.__init__", "sframe_unwind.elf.symbols._decode")
_LAYERS = {
    "dump": (
        *(*_READING, *_TABLES),
        "sframe_unwind.sframe.rules.RuleTable.__missing__",
        "sframe_unwind.cli.dump.to_text",
    ),
    "lookup": (
        *_READING,
        *_TABLES,
        *_NAMES,
        "sframe_unwind.elf.binary.stubs",
        "sframe_unwind.cli.lookup.describe_rule",
    ),
    "verify": (
        *(*_READING, *_TABLES, *_CFI, *_NAMES),
        "sframe_unwind.verify.comparison.Comparison._compare",
        "sframe_unwind.verify.comparison.merged",
        "sframe_unwind.verify.verdict.Verdict.lines",
    ),
    "verify --against code": (
        *(*_READING, *_CFI, *_NAMES),
        "sframe_unwind.code.lifting.Lifter.__init__",
        "sframe_unwind.code.interpretation.Interpreter.__init__",
        "sframe_unwind.code.checking.Checker.result",
        "sframe_unwind.verify.code_check.report",
    ),
    "lint": (
        *(*_READING, *_NAMES),
        "sframe_unwind.sframe.header.read",
        "sframe_unwind.lint.functions.Pass.__init__",
        "sframe_unwind.lint.judging._losses",
        "sframe_unwind.lint.coverage.undescribed",
    ),
    "convert": (
        *(*_READING, *_TABLES, _NAMES[0]),
        "sframe_unwind.translation.to_sframe._part",
        "sframe_unwind.sframe.encode.encode",
        "sframe_unwind.convert.elf_copy.ElfCopy.write",
        "sframe_unwind.translation.proof.at_changes",
    ),
    "convert --to debug_frame --all": (
        *(*_READING, *_TABLES),
        "sframe_unwind.cfi.encode.fde",
        "sframe_unwind.convert.debug_file._assembled",
        "sframe_unwind.cfi.records.Fde.decode",
    ),
    "survey": (
        *(*_READING[1:], *_TABLES, *_CFI, *_NAMES),
        "sframe_unwind.survey.judging.producers_of",
        "sframe_unwind.survey.judging._Judge._extents",
        "sframe_unwind.lint.functions.Pass.__init__",
    ),
    "backtrace": (
        *(_READING[0], _READING[1], "sframe_unwind.elf._reader.Reader.read"),
        "sframe_unwind.process.core_file._threads",
        "sframe_unwind.process.loader.Loader.objects",
        "sframe_unwind.elf.binary.find_build_id",
        "sframe_unwind.sframe.fde.decode",
        "sframe_unwind.unwind.walk.step",
        "sframe_unwind.elf.symbols._decode",
    ),
}
"""Functions of each command, from each package that takes part in it."""


def _arguments(command: str, folder: Path) -> list[str]:
    name, *options = command.split()
    if name == "backtrace":
        core = folder / "core"
        core.write_bytes(content_of("core gdb amd64"))
        return [name, "--core", str(core), "--exe", str(program("amd64")), "--debug-dir", str(folder)]
    file = str(build("free_walk"))
    more = {
        "lookup": [file, "_start", "0x401000"],
        "convert": [file, "-o", str(folder / "made"), *options],
        "survey": ["-j1", "--store", str(folder / "store"), file],
        "verify": ["-j1", *options, file],
    }
    return [name, *more.get(name, [file])]


_PLACES = [(command, place) for command, places in _LAYERS.items() for place in places]


@pytest.mark.parametrize(("command", "place"), _PLACES)
def test_bug_is_reported_as_one(
    command: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def planted(*_arguments: object, **_more: object) -> NoReturn:
        raise AttributeError("planted")

    arguments = _arguments(command, tmp_path)
    monkeypatch.setattr(place, planted)
    monkeypatch.delenv("SFRAME_UNWIND_TRACEBACK", raising=False)
    status = main(arguments)
    error = capsys.readouterr().err
    assert (status, error.count("\n")) == (70, 1), error
    assert _BUG in error
    assert "not a readable ELF file" not in error


def test_survey_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The database has the bug at one file, and the results of the other."""
    good, bad = build("leaf", "aarch64"), build("leaf")

    def planted(binary: ElfBinary) -> Producers:
        if binary.arch.name == "amd64":
            raise AttributeError("planted")
        return original(binary)

    original = producers_of
    monkeypatch.setattr("sframe_unwind.survey.judging.producers_of", planted)
    store = tmp_path / "store"
    assert main(["survey", "-j1", "--store", str(store), str(bad), str(good)]) == 70
    assert f"{bad}: {_BUG}" in capsys.readouterr().err
    query = "SELECT state, why FROM files JOIN paths USING (digest) WHERE path = ?"
    with sqlite3.connect(store) as database:
        found = [database.execute(query, (str(path),)).fetchone() for path in (bad, good)]
    assert found[0][1].startswith(_BUG)
    assert found[1] == ("surveyed", "")
