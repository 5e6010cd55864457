"""The results for one file, compared with the output of other tools and commands."""

from __future__ import annotations

import json
import random
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sframe_unwind.cli import main
from sframe_unwind.survey.judging import judge
from sframe_unwind.survey.rows import FAILED, MOST_FINDINGS, NOTHING, SURVEYED, Surveyed, SurveyPlan
from tests.elf.objects import run, tools_for
from tests.hanging import HANG
from tests.missing import package_needed
from tests.samples.build import build
from tests.survey.programs import plain_program

CONVERT = SurveyPlan(convert=True)
SYSTEM = ("libdl.so.2", "libm.so.6", "libz.so.1")


def sizes(path: Path) -> dict[str, int]:
    """Return the sizes of sections by name, as readelf prints them."""
    text = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
    rows = re.findall(r"^ *\[ *\d+\] (\S+) +\S+ +[0-9a-f]+ [0-9a-f]+ ([0-9a-f]+) \w+ +(\w*) ", text, re.MULTILINE)
    found = Counter[str]()
    for name, size, flags in rows:
        found[name] += int(size, 16)
        found["code"] += int(size, 16) * ("X" in flags)
    return found


def system_libraries() -> list[Path]:
    return [path for name in SYSTEM for path in Path("/usr/lib").glob(f"*-linux-gnu/{name}")]


def command(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    """Return the JSON that a command prints."""
    capsys.readouterr()
    main(list(map(str, arguments)))
    return json.loads(capsys.readouterr().out)


def test_compact_sizes_are_those_of_convert(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    library, own = next(iter(system_libraries())), build("callback", "amd64", 3, "O2")
    for path, plan in ((library, SurveyPlan(convert=True, compact=True)), (own, SurveyPlan(compact=True))):
        row = judge(path.read_bytes(), plan).file
        made = command(capsys, "convert", "--json", "--compact", path, "-o", tmp_path / "copy")["compact"]["bytes"]
        assert made == {"plain": row.sframe_plain, "shared": row.sframe_shared, "divided": row.sframe_compact}
        assert 0 < row.sframe_compact < row.sframe_plain
    assert judge(library.read_bytes(), SurveyPlan(compact=True)).file.sframe_compact == 0
    assert judge(own.read_bytes(), SurveyPlan()).file.sframe_compact == 0


def functions(found: Surveyed, judged_by: str, kind: str) -> int:
    return sum(row.functions for row in found.kinds if (row.judge, row.kind) == (judged_by, kind))


@pytest.mark.parametrize("path", [*system_libraries(), Path("/bin/true")])
def test_sizes_are_those_of_readelf(path: Path) -> None:
    row = judge(path.read_bytes(), SurveyPlan()).file
    told = sizes(path)
    assert (row.state, row.origin, row.sframe) == (SURVEYED, "", 0)
    assert [row.code, row.eh_frame, row.eh_frame_hdr] == [told["code"], told[".eh_frame"], told[".eh_frame_hdr"]]
    assert row.bytes == path.stat().st_size


@pytest.mark.parametrize(
    ("name", "abi", "version"), [("plt", "amd64", 2), ("leaf", "aarch64", 3), ("leaf", "s390x", 3)]
)
def test_sframe_of_the_file(name: str, abi: str, version: int, capsys: pytest.CaptureFixture[str]) -> None:
    """The numbers are those of verify and lint."""
    path = build(name, abi, version)
    found = judge(path.read_bytes(), CONVERT)
    (told,) = command(capsys, "verify", "--json", path)["files"]
    assert (found.file.origin, found.file.version, found.file.machine) == ("file", version, abi)
    assert found.file.sframe == sizes(path)[".sframe"]
    assert found.file.addresses == told["addresses_compared"]
    assert found.file.disagreements == len(told["disagreements"])
    assert functions(found, "tables", "agrees") + functions(found, "tables", "disagrees") == told["functions"]["both"]
    only = functions(found, "tables", "DWARF only") + functions(found, "tables", "not expressible")
    assert only == told["functions"]["dwarf_only"]
    (section,) = command(capsys, "lint", "--json", *(f"--for={p.profile}" for p in found.profiles), path)["files"][0][
        "sections"
    ]
    assert [(p.profile, p.outcome, p.functions_lost, p.bytes_lost) for p in found.profiles] == [
        (p["profile"], p["outcome"], p["functions_lost"], p["bytes_lost"]) for p in section["profiles"]
    ]


@pytest.mark.parametrize("path", [*system_libraries(), build("plt", "amd64", 3)])
def test_a_function_counts_once(path: Path) -> None:
    """The counts equal readelf's: the PLT has one FDE of CFI, but two of SFrame, of other sizes."""
    command = ["readelf", "--debug-dump=frames", str(path)]
    # The status is 1 where a debug file that the library names is not installed.
    shown = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG).stdout
    listed = re.findall(r"^\S+ \S+ \S+ FDE ", shown, re.MULTILINE)
    assert judge(path.read_bytes(), CONVERT).file.functions == len(listed) > 2


@pytest.mark.parametrize("path", system_libraries())
def test_file_is_judged_by_what_convert_makes(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The copy that convert writes gets the same numbers as the file it is made from."""
    copy = tmp_path / path.name
    told = command(capsys, "convert", "--json", path, "-o", copy)
    found, of_copy = judge(path.read_bytes(), CONVERT), judge(copy.read_bytes(), CONVERT)
    assert (found.file.origin, of_copy.file.origin) == ("convert", "file")
    assert found.file.sframe == told["size"]
    assert functions(found, "convert", "left out") == len(told["losses"])
    assert found.file._replace(origin="", bytes=0) == of_copy.file._replace(origin="", bytes=0)
    assert found.profiles == of_copy.profiles
    assert found.findings == of_copy.findings
    assert [row for row in found.kinds if row.judge != "convert"] == list(of_copy.kinds)


def test_code(capsys: pytest.CaptureFixture[str]) -> None:
    package_needed("pyvex")
    path = build("plt")
    found = judge(path.read_bytes(), SurveyPlan(code=True))
    (told,) = command(capsys, "verify", "--against=code", "--json", path)["files"]
    row, code = found.file, told["code"]
    assert (row.interpreted, row.instructions) == (code["functions"], code["instructions"])
    assert [row.sframe_proved, row.sframe_wrong, row.sframe_unknown] == list(code["sframe"].values())[:3]
    assert [row.dwarf_proved, row.dwarf_wrong, row.dwarf_unknown] == list(code["dwarf"].values())[:3]
    wrong = [finding for finding in found.findings if finding.judge == "code"]
    assert [(one.address, one.kind, one.table, one.says) for one in wrong] == [
        (one["address"], one["what"], one["table"], one["rule"]) for one in code["findings"]
    ]
    assert row.sframe_wrong > 0, "GNU ld's rows for .plt.got are wrong"
    few = judge(path.read_bytes(), SurveyPlan(code=True, most_code=8)).file
    assert (few.not_interpreted, few.interpreted) == ("more than 8 bytes of code", 0)


def test_producers(tmp_path: Path) -> None:
    source = tmp_path / "one.c"
    source.write_text("int one(int a) { return a; }", encoding="ascii")
    assembly = tmp_path / "two.s"
    assembly.write_text(".text\n.globl two\ntwo: .cfi_startproc\nret\n.cfi_endproc\n", encoding="ascii")
    result = tmp_path / "one.so"
    run("gcc", "-g", "-shared", "-fPIC", "-o", result, source, assembly)
    version = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True, check=True).stdout.strip()
    assembler = subprocess.run(["as", "--version"], capture_output=True, text=True, check=True).stdout
    row = judge(result.read_bytes(), SurveyPlan()).file
    assert row.compiler == f"GCC {version}"
    assert row.assembler.startswith("GNU as ")
    assert row.assembler.split()[-1] in assembler
    assert row.linker == "", "GNU ld does not say"
    comment = tmp_path / "comment"
    comment.write_bytes(b"Linker: LLD 21.1.0\0clang version 21.1.0 (some)\0rustc version 1.85.0 (x 2025)\0")
    run("objcopy", f"--update-section=.comment={comment}", result)
    row = judge(result.read_bytes(), SurveyPlan()).file
    assert (row.compiler, row.linker) == ("clang 21.1.0 + rustc 1.85.0", "LLD 21.1.0")


def test_object_file(tmp_path: Path) -> None:
    tools = tools_for("amd64", 3)
    source, result = tmp_path / "one.s", tmp_path / "one.o"
    source.write_text("one: .cfi_startproc\nret\n.cfi_endproc\n", encoding="ascii")
    run(tools / "as", "-o", result, source)
    row = judge(result.read_bytes(), CONVERT).file
    assert (row.state, row.type, row.origin) == (SURVEYED, "object", "")
    assert row.why == "not converted: a relocatable object file; convert what it is linked to"
    run(tools / "as", "--gsframe", "-o", result, source)
    row = judge(result.read_bytes(), CONVERT).file
    assert (row.origin, row.functions, row.covered) == ("file", 1, 1)


def test_reasons_of_gnu_as(tmp_path: Path) -> None:
    """For a file without SFrame, the result names the functions that the assembler would leave out."""
    source, result = tmp_path / "one.s", tmp_path / "one.so"
    source.write_text(
        ".text\none: .cfi_startproc\n.cfi_undefined %rbp\nnop\n.cfi_endproc\ntwo: .cfi_startproc\nret\n.cfi_endproc\n",
        encoding="ascii",
    )
    run("gcc", "-shared", "-nostdlib", "-o", result, source)
    told = [(row.judge, row.reason, row.functions) for row in judge(result.read_bytes(), CONVERT).kinds if row.reason]
    assert ("GNU as", "rbp cannot be restored", 1) in told
    assert ("convert", "rbp cannot be restored", 1) in told


def test_malformed_sframe_is_linted() -> None:
    """verify cannot read it; the findings of lint are in the result."""
    data = bytearray(build("leaf").read_bytes())
    data[data.index(b"\xe2\xde\x03")] = 0
    found = judge(bytes(data), CONVERT)
    assert found.file.state == FAILED
    assert "magic" in found.file.why
    assert {profile.outcome for profile in found.profiles} == {"refused"}
    assert any(finding.kind == "SF010 header-malformed" for finding in found.findings)


def test_nothing_to_survey(tmp_path: Path) -> None:
    run("objcopy", "-R", ".eh_frame", "-R", ".eh_frame_hdr", "/bin/true", tmp_path / "none")
    assert judge((tmp_path / "none").read_bytes(), CONVERT).file.state == NOTHING


def test_damaged_files_are_results() -> None:
    """Bytes are changed at random, and files cut: each gives a result, and none an internal error."""
    chosen = random.Random(15)
    for original in (plain_program(), build("leaf").read_bytes()):
        for _ in range(60):
            data = bytearray(original)
            for _ in range(8):
                data[chosen.randrange(len(data) if chosen.random() < 0.3 else 4096)] = chosen.randrange(256)
            found = judge(bytes(data[: chosen.randrange(len(data))] if chosen.random() < 0.2 else data), CONVERT)
            assert "internal error" not in found.file.why
            assert found.file.state != FAILED or found.file.why


def test_findings_are_bounded() -> None:
    """A section in which every function breaks a rule."""
    data = bytearray(build("sizes").read_bytes())
    found = judge(bytes(data), CONVERT)
    counted = Counter(finding[:3] for finding in found.findings)
    assert found.file.findings >= sum(counted.values())
    assert max(counted.values(), default=0) <= MOST_FINDINGS
