"""A bug of this package is reported as an internal error, in whichever part of a command it is."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import NoReturn

import pytest

from lab.fuzz.file_seeds import content_of, program
from lab.fuzz.perf import seeds as recordings
from sframe_unwind import baseline
from sframe_unwind.baseline import Key
from sframe_unwind.cli import main
from sframe_unwind.elf import ElfBinary
from sframe_unwind.survey.producers import Producers, producers_of
from tests.code.assembled import assemble
from tests.kernel.elf_dump import write_dump
from tests.missing import package_needed
from tests.samples.build import build
from tests.verify.orc_source import FUNCTION, ORC

_BUG = "internal error: AttributeError: planted"

_READING = (
    "sframe_unwind.elf.binary.open_file",
    "sframe_unwind.elf.headers.file_header",
    "sframe_unwind.elf.headers.Headers.read",
)
"""Steps that every command takes to read a file."""
_TABLES = (
    "sframe_unwind.elf.relocation.Relocations.__init__",
    "sframe_unwind.sframe.header.read",
    "sframe_unwind.sframe.fde.decode",
)
_CFI = (
    "sframe_unwind.elf.cfi.FileCfi._found",
    "sframe_unwind.cfi.records.Fde.decode",
    "sframe_unwind.cfi.rules.CfiRules._relative",
)
_LAYOUT = "sframe_unwind.elf.section_addresses.Layout.__init__"
_NAMES = (_LAYOUT, "sframe_unwind.elf.symbols.decoded")
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
        "sframe_unwind.elf.plt.stubs",
        "sframe_unwind.cli.lookup.describe_rule",
    ),
    "verify": (
        *(*_READING, *_TABLES, *_CFI, _LAYOUT),  # functions that agree need no name
        "sframe_unwind.verify.comparison.Comparison._compare",
        "sframe_unwind.verify.comparison.merged",
        "sframe_unwind.verify.verdict.Verdict.lines",
    ),
    "verify --against code": (
        *(*_READING, *_CFI, *_NAMES),
        "sframe_unwind.code.decode.lifting.Lifter.__init__",
        "sframe_unwind.code.interpret.interpretation.Interpreter.__init__",
        "sframe_unwind.code.judge.checking.Checker.result",
        "sframe_unwind.verify.code_check.report",
    ),
    "verify --against orc": (
        *_READING,
        "sframe_unwind.orc.table.OrcTable.__init__",
        "sframe_unwind.orc.entry._place",
        "sframe_unwind.verify.orc._differences",
    ),
    "verify --html OUT --write-baseline OUT": (
        "sframe_unwind.verify.page._Data.of",
        "sframe_unwind.cli.verify.keys_of",
    ),
    "verify --json": ("sframe_unwind.verify.verdict.Verdict.to_json",),
    "lint": (
        *(*_READING, *_NAMES),
        "sframe_unwind.sframe.header.read",
        "sframe_unwind.lint.functions.Pass.__init__",
        "sframe_unwind.lint.judging._losses",
        "sframe_unwind.lint.coverage.undescribed",
    ),
    "lint --sarif OUT --for linux-user": (
        "sframe_unwind.lint.sarif._rules",
        "sframe_unwind.lint.losses._Function.__init__",
    ),
    "lint --baseline IN": ("sframe_unwind.baseline.Key.__new__",),
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
        "sframe_unwind.convert.debug_file.assembled",
        "sframe_unwind.cfi.records.Fde.decode",
    ),
    "convert --compact": (
        "sframe_unwind.convert.to_sframe.compacted",
        "sframe_unwind.translation.dividing._rows_of",
        "sframe_unwind.sframe.sharing._longest",
        "sframe_unwind.translation.proof._compare",
    ),
    "annotate": (
        *_READING,
        "sframe_unwind.code.decode.lifting.Lifter.__init__",
        "sframe_unwind.annotate.functions.functions_by_code",
        "sframe_unwind.annotate.directives.Writer.__init__",
        "sframe_unwind.show.file.ShownFile.__init__",
    ),
    "annotate --patch": ("sframe_unwind.annotate.functions.untyped_code",),
    "annotate --json": ("sframe_unwind.cli.annotate.to_json",),
    "convert --from code": ("sframe_unwind.convert.completed.counted_rules",),
    "convert --from cfi,code": ("sframe_unwind.convert.completed.check_elf",),
    "convert --for linux-user": ("sframe_unwind.convert.to_sframe.target_for",),
    "survey --compact": ("sframe_unwind.convert.to_sframe.compacted",),
    "survey --against code": ("sframe_unwind.code.judge.checking.Checker.result",),
    "survey --html OUT": ("sframe_unwind.survey.page.page",),
    "survey --csv OUT": ("sframe_unwind.cli.survey.as_csv",),
    "survey": (
        *(*_READING[1:], *_TABLES, *_CFI, *_NAMES),
        "sframe_unwind.survey.judging.producers_of",
        "sframe_unwind.survey.judging._Judge._extents",
        "sframe_unwind.lint.functions.Pass.__init__",
    ),
    "backtrace": (
        *(_READING[0], _READING[1], "sframe_unwind.elf.headers.Headers.read"),
        "sframe_unwind.process.core_file._threads",
        "sframe_unwind.process.loader.Loader.objects",
        "sframe_unwind.elf.build_id.find_build_id",
        "sframe_unwind.sframe.fde.decode",
        "sframe_unwind.unwind.walk.step",
        "sframe_unwind.elf.symbols.decoded",
    ),
    "backtrace --regs pc=1,sp=2,fp=3": (
        "sframe_unwind.cli.contexts.assignments",
        "sframe_unwind.cli.contexts.from_registers",
        "sframe_unwind.process.stacks.walk",
    ),
    "backtrace --ucontext 0x1000": ("sframe_unwind.unwind.saved_context._read",),
    "backtrace --jmpbuf 0x1000": ("sframe_unwind.cli.contexts.jump_buffer",),
    "backtrace --vmcore": (
        "sframe_unwind.process.drgn_kernel._platform",
        "sframe_unwind.process.drgn_kernel._program",
        "sframe_unwind.process.drgn_kernel._type",
        "sframe_unwind.process.drgn_kernel.DrgnKernel.read",
        "sframe_unwind.process.drgn_kernel.DrgnKernel.symbol",
        "sframe_unwind.process.drgn_kernel.DrgnKernel.structure",
        "sframe_unwind.process.drgn_kernel.DrgnKernel._function_at",
        "sframe_unwind.process.drgn_kernel.DrgnKernel._places",
        "sframe_unwind.process.drgn_kernel.DrgnKernel.running_registers",
        "sframe_unwind.process.drgn_kernel.DrgnKernel.modules",
        "sframe_unwind.process.vmcore.ElfFile",
        "sframe_unwind.process.vmcore.find_places",
        "sframe_unwind.process.vmcore.KernelObject._code",
        "sframe_unwind.process.vmcore.KernelObject._sframe",
        "sframe_unwind.process.vmcore.walk",
        "sframe_unwind.kernel.tasks.TaskList.read",
        "sframe_unwind.kernel.structures.StructureReader.number",
        "sframe_unwind.kernel.unwinder.KernelUnwinder.unwind",
        "sframe_unwind.sframe.header.read",
        "sframe_unwind.sframe.fde.decode",
        "sframe_unwind.unwind.walk.step",
    ),
    "perf --convert --html OUT --folded OUT --speedscope OUT": (
        *_READING[:2],
        "sframe_unwind.perf.recording.read_header",
        "sframe_unwind.perf.records._plain",
        "sframe_unwind.perf.recording.read_sample",
        "sframe_unwind.perf.spaces.Spaces.of",
        "sframe_unwind.perf.code_file.CodeFile.__init__",
        "sframe_unwind.perf.code_file.CodeFile._own_section",
        "sframe_unwind.perf.linux_reader.lint",
        "sframe_unwind.perf.sample_walk._Unwinding.__init__",
        "sframe_unwind.perf.judging.judge",
        "sframe_unwind.perf.flame.Stacks.tree",
        "sframe_unwind.perf.names.Names._find",
        "sframe_unwind.sframe.fde.decode",
        "sframe_unwind.cfi.records.Fde.decode",
    ),
}
"""Functions of each command, from each package that takes part in it."""


def _arguments(command: str, folder: Path) -> list[str]:
    """Return the arguments of a command: its input, and files in a folder for ``IN`` and ``OUT``."""
    known = folder / "known"
    known.write_text(baseline.to_text([Key("file", "place", "text")], "lint"), encoding="utf-8")
    made = {"OUT": str(folder / "made"), "IN": str(known)}
    name, *options = [made.get(word, word) for word in command.split()]
    return [name, *options, *_input(name, options, folder)]


def _input(name: str, options: list[str], folder: Path) -> list[str]:
    file = str(build("free_walk"))
    if options == ["--vmcore"]:
        package_needed("drgn")
        dump = write_dump(folder)
        return [str(dump.vmcore), "--exe", str(dump.vmlinux)]
    if name == "backtrace":
        core = folder / "core"
        core.write_bytes(content_of("core gdb amd64"))
        return ["--core", str(core), "--exe", str(program("amd64")), "--debug-dir", str(folder)]
    if name == "perf":
        recording = folder / "perf.data"
        recording.write_bytes(next(seed.data for seed in recordings() if seed.name == "free_walk amd64"))
        return [str(recording)]
    if "orc" in options:
        file = str(assemble("amd64", ORC + FUNCTION.format(pushed=24, bp=-16), folder / "function.o"))
    more = {
        "lookup": [file, "_start", "0x401000"],
        "convert": [file, "-o", str(folder / "converted")],
        "survey": ["-j1", "--store", str(folder / "store"), file],
        "verify": ["-j1", file],
    }
    return more.get(name, [file])


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
    """The database has the bug for one file, and the results for the other."""
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
