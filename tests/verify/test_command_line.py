"""The command `verify`: its output, its exit statuses, and one clear line for an unreadable file."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from lab.drive.cutting import without_section_headers
from sframe_unwind import elf
from sframe_unwind.cli import main
from sframe_unwind.sframe.encode import describe, encode
from sframe_unwind.verify import Plan, verify
from sframe_unwind.verify.inputs import Failure, Input, answer
from sframe_unwind.verify.verdict import Verdict
from tests.abis.rewrite import overwrite
from tests.elf.objects import run, tools_for
from tests.samples.build import build


def complaint(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Return the one line of an error message; check that nothing is on standard output."""
    assert main(["verify", *map(str, arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = str(err).splitlines()
    return line


def test_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """The summary of a program with a wrong row of GNU ld in `.plt.got`, and a start-up file without SFrame."""
    program = build("plt")
    assert main(["verify", str(program)]) == 1
    first, *rest = capsys.readouterr().out.splitlines()
    assert first == (
        f"{program}: 7 functions in both, 0 in SFrame only, 1 in DWARF only;"
        f" {verify(program).addresses_compared} addresses compared, 2 disagreements"
    )
    got = verify(program).disagreements[0].spot.address
    assert rest[0] == f"  {got:#x} (.plt.got): cfa: SFrame rsp + 16; DWARF rsp + 8"
    assert rest[1] == f"  {got + 8:#x} (.plt.got): cfa: SFrame rsp + 16; DWARF rsp + 8"
    assert rest[2].endswith(" _start")


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    program = build("plt")
    assert main(["verify", "--json", str(program)]) == 1
    (file,) = json.loads(capsys.readouterr().out)["files"]
    counts = {"both": 7, "sframe_only": 0, "dwarf_only": 1, "covered_in_part": 0, "not_compared": 0}
    assert file["functions"] == counts
    first, second = file["disagreements"]
    assert first.pop("address") + 8 == second.pop("address")
    assert (
        first
        == second
        == {
            "section": ".plt.got",
            "function": "",
            "what": "cfa",
            "sframe": "rsp + 16",
            "dwarf": "rsp + 8",
        }
    )


def test_json_has_what_the_text_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON has the functions that only one side describes, why, and the files that could not be compared."""
    program, missing = build("realign", version=2), tmp_path / "missing"
    assert main(["verify", "--json", str(program), str(missing)]) == 2
    printed = json.loads(capsys.readouterr().out)
    assert printed["failures"] == [{"file": str(missing), "error": "No such file or directory"}]
    (file,) = printed["files"]
    assert [entry["function"] for entry in file["dwarf_only"]] == ["_start", "aligned_local", "aligned_entry"]
    assert [entry["reason"] for entry in file["dwarf_only"]] == ["", *2 * ["CFA r10, for which version 2 has no words"]]
    assert set(file["dwarf_only"][0]) == {"address", "section", "size", "function", "reason"}
    assert file["sframe_only"] == file["covered_in_part"] == file["not_compared"] == file["problems"] == []


def test_rules_that_depend_on_the_address(capsys: pytest.CaptureFixture[str]) -> None:
    """The CFI of a PLT is one row with an expression; GNU ld 2.40 has SFrame's row begin two bytes late."""
    program = build("plt_ibt", version=1)
    assert main(["verify", "--json", str(program)]) == 1
    (file,) = json.loads(capsys.readouterr().out)["files"]
    found = [entry for entry in file["disagreements"] if entry["section"] == ".plt"]
    assert {(entry["address"] % 16, entry["sframe"], entry["dwarf"]) for entry in found} == {(9, "rsp + 8", "rsp + 16")}


def test_functions_of_one_side_and_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    """Before version 3 the assembler leaves out functions with a CFA based on r10."""
    assert main(["verify", str(build("realign", version=2))]) in (0, 1)
    out = capsys.readouterr().out
    assert "aligned_local (CFA r10, for which version 2 has no words)" in out


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_directory_stands_for_the_files_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str], jobs: str) -> None:
    for number, name in enumerate(("leaf", "recursion")):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / name).write_bytes(build(name, "aarch64", 3).read_bytes())
        (folder / "link").symlink_to(folder / name)
    run("ar", "rcs", tmp_path / "1/lib.a", tmp_path / "0/leaf")
    (tmp_path / "script").write_text("#!/bin/sh\n", encoding="ascii")
    run(tools_for("amd64", 3) / "objcopy", "--only-keep-debug", build("leaf"), tmp_path / "leaf.debug")
    assert main(["verify", "--json", "-j", jobs, str(tmp_path)]) == 0
    files = json.loads(capsys.readouterr().out)["files"]
    assert [file["file"].removeprefix(f"{tmp_path}/") for file in files] == ["0/leaf", "1/lib.a(leaf)", "1/recursion"]
    assert all(file["addresses_compared"] > 5 for file in files)


def test_missing_and_unreadable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing, text = tmp_path / "missing", tmp_path / "text"
    text.write_text("no ELF", encoding="ascii")
    assert complaint(capsys, missing) == f"sframe-unwind: {missing}: No such file or directory"
    assert complaint(capsys, text).startswith(f"sframe-unwind: {text}: not a readable ELF file")
    # Not even root can read this one from its start.
    assert complaint(capsys, "/proc/self/mem") == "sframe-unwind: /proc/self/mem: Input/output error"
    text.unlink()
    assert complaint(capsys, tmp_path) == f"sframe-unwind: {tmp_path}: nothing with a .sframe section in it"


@pytest.mark.parametrize("options", [(), ("--against", "code")], ids=["dwarf", "code"])
def test_no_section_headers(options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The segment leads to the SFrame, but nothing to the code: no function would be checked, and no error found."""
    program = Path(shutil.copy(build("plt"), tmp_path / "program"))
    without_section_headers(program)
    (section,) = elf.load(program)
    assert len(list(section.functions())) == 7
    why = "no section headers, which tell where code and DWARF CFI are"
    assert complaint(capsys, *options, program) == f"sframe-unwind: {program}: {why}"


def test_nothing_to_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    only = build("free_sframe_only")
    assert complaint(capsys, only) == f"sframe-unwind: {only}: no DWARF CFI to compare with"
    none = tmp_path / "none"
    run(tools_for("amd64", 3) / "objcopy", "--remove-section", ".sframe", build("free_walk"), none)
    assert complaint(capsys, none) == f"sframe-unwind: {none}: no .sframe section"


def test_truncated_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content, file = build("leaf").read_bytes(), tmp_path / "file"
    for size in range(1, len(content), len(content) // 40):
        file.write_bytes(content[:size])
        assert complaint(capsys, file).startswith(f"sframe-unwind: {file}: ")


def test_damaged_cfi(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With damaged CFI, the command prints one line of error, or compares what can still be decoded."""
    program, file = build("leaf"), tmp_path / "file"
    content = program.read_bytes()
    run(tools_for("amd64", 3) / "objcopy", "--dump-section", f".eh_frame={tmp_path / 'cfi'}", program, file)
    start = content.index((tmp_path / "cfi").read_bytes())
    for offset in range(0, 80, 2):
        damaged = bytearray(content)
        damaged[start + offset] ^= 0xFF
        file.write_bytes(damaged)
        status = main(["verify", str(file)])
        err = capsys.readouterr().err
        assert "internal error" not in err
        assert (status == 2) == (err != "")
        assert err.count("\n") == (status == 2)


def test_one_that_cannot_be_read_does_not_stop_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = build("free_walk"), tmp_path / "bad"
    bad.write_bytes(good.read_bytes()[:3000])
    assert main(["verify", str(bad), str(good)]) == 2
    out, err = capsys.readouterr()
    assert err.startswith(f"sframe-unwind: {bad}: ")
    assert out.startswith(f"{good}: ")


def test_functions_upon_functions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sizes that would make the work grow with the square of the section's size are refused."""
    program, file = build("free_walk"), tmp_path / "file"
    (section,) = elf.load(program)
    spec = describe(section)
    (table,) = spec.tables
    huge = tuple(function._replace(size=0xFFFFFFFF) for function in table.functions)
    overwrite(Path(shutil.copy(program, file)), encode(spec._replace(tables=(table._replace(functions=huge),))))
    total = len(huge) * 0xFFFFFFFF
    assert complaint(capsys, file).startswith(
        f"sframe-unwind: {file}: SFrame describes functions of {total:#x} bytes in all, but there are 0x"
    )


@pytest.mark.parametrize("count", ["0", "-5", "many"])
def test_number_of_processes(capsys: pytest.CaptureFixture[str], count: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["verify", f"-j{count}", str(build("leaf"))])
    assert ended.value.code == 2
    assert f"invalid number of processes value: '{count}'" in capsys.readouterr().err


def test_page_that_cannot_be_written_is_noticed_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "missing"  # would be the error if the files were looked at first
    assert complaint(capsys, "--html", "-", missing) == "sframe-unwind: --html: expected the name of a file, found '-'"
    assert complaint(capsys, "--html", tmp_path, missing).startswith("sframe-unwind: --html: expected the name of a")
    page = tmp_path / "nowhere" / "page.html"
    said = complaint(capsys, "--html", page, missing)
    assert said == f"sframe-unwind: {page}: cannot be written: No such file or directory"
    assert not list(tmp_path.iterdir())


def test_nul_in_the_name_of_a_thin_archives_member(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Such a member costs nothing else."""
    archive, good = tmp_path / "nul.a", build("leaf", "aarch64")
    archive.write_bytes(b"!<thin>\n" + b"a\0b/".ljust(48) + b"4".ljust(10) + b"`\n")
    assert main(["verify", str(good), str(archive)]) == 2
    out, err = capsys.readouterr()
    assert out.startswith(f"{good}: ")
    # Python's words: "embedded null byte", and since 3.13 "open: embedded null character in path".
    start = f"sframe-unwind: {archive}(a\\x00b): {tmp_path}/a\\x00b: not the name of a file: "
    assert err.startswith(start)
    assert re.fullmatch(r"(open: )?embedded null (byte|character in path)\n", err[len(start) :])


def test_file_that_shows_an_error_of_ours_costs_nothing_else(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = build("leaf", "aarch64"), build("leaf")

    def planted(item: Input, plan: Plan, *only: Any) -> Verdict | Failure:
        if item.name == str(bad):
            raise KeyError("planted")
        return answer(item, plan, *only)

    monkeypatch.setattr("sframe_unwind.cli.verify.answer", planted)
    for jobs in ("1", "2"):
        assert main(["verify", "-j", jobs, str(bad), str(good)]) == 70
        out, err = capsys.readouterr()
        assert out.startswith(f"{good}: ")
        assert err.startswith(f"sframe-unwind: {bad}: internal error: KeyError: 'planted'")
