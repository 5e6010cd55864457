"""`verify --against code`: its output, exit statuses, JSON and page."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sframe_unwind.cli import main
from sframe_unwind.code.decode import lifting
from sframe_unwind.code.interpret.interpretation import Interpreter
from sframe_unwind.elf.section_addresses import FileAddress
from sframe_unwind.verify import Plan, verify
from sframe_unwind.verify.page import OUTCOMES, TEMPLATE
from tests.browser import PIXELS, render
from tests.code.assembled import assemble
from tests.elf.objects import run, tools_for
from tests.hanging import HANG
from tests.samples.build import build

CHECKOUT = Path(__file__).resolve().parents[2]
FUNCTION = """\
    .type {name},@function
{name}:
    .cfi_startproc
    push    %rbx
{directive}
    xor     %eax,%eax
    pop     %rbx
    .cfi_def_cfa_offset 8
    ret
    .cfi_endproc
    .size {name},.-{name}
"""
RIGHT, WRONG = "    .cfi_def_cfa_offset 16", ""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Build an object file with a function whose push has no directive, and one whose push has one."""
    source = FUNCTION.format(name="wrong", directive=WRONG) + FUNCTION.format(name="right", directive=RIGHT)
    return assemble("amd64", source, tmp_path / "two.o")


def test_what_is_printed(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--against", "code", str(program)]) == 1
    first, *rest = capsys.readouterr().out.splitlines()
    sums = "6 proved, 2 wrong, 0 unknown"
    assert first == f"{program}: code of 2 functions, 8 instructions: SFrame {sums}; DWARF {sums}"
    # The table is wrong until the pop, and right after it.
    assert rest == [
        "  .text+0x1 wrong+0x1: cfa: the code has CFA = rsp + 16 since `push %rbx` at .text+0x0;"
        " SFrame and DWARF say rsp + 8"
    ]


def test_sframe_and_dwarf_agree_on_what_is_wrong(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(program)]) == 0
    assert "no disagreements" in capsys.readouterr().out


def test_nothing_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right = assemble("amd64", FUNCTION.format(name="right", directive=RIGHT), tmp_path / "right.o")
    assert main(["verify", "--against", "code", str(right)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_json(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--against", "code", "--json", str(program)]) == 1
    (file,) = json.loads(capsys.readouterr().out)["files"]
    counts = {"proved": 6, "wrong": 2, "unknown": 0, "not_examined": 0}
    finding = {
        "address": 1,
        "section": ".text",
        "function": "wrong+0x1",
        "what": "cfa",
        "rule": "rsp + 8",
        "code": "CFA = rsp + 16 since `push %rbx` at .text+0x0",
        "assumes": [],
    }
    assert file == {
        "file": str(program),
        "loading": [],
        "code": {
            "functions": 2,
            "instructions": 8,
            "sframe": counts,
            "dwarf": counts,
            "findings": [{"table": "dwarf", **finding}, {"table": "sframe", **finding}],
        },
    }


def test_whom_the_code_agrees_with(capsys: pytest.CaptureFixture[str]) -> None:
    """GNU ld's row for `.plt.got` claims a push."""
    program = build("plt")
    assert main(["verify", "--against", "code", "--against", "dwarf", str(program)]) == 1
    out = capsys.readouterr().out
    assert "(.plt.got): cfa: SFrame rsp + 16; DWARF rsp + 8; the code agrees with DWARF" in out
    assert "(.plt.got): cfa: the code has CFA = rsp + 8; SFrame says rsp + 16" in out
    verdict = verify(program, Plan(code=True))
    assert {one.to_json()["code"] for one in verdict.disagreements} == {"dwarf"}


def test_one_table_is_enough(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for section, table in ((".sframe", "DWARF"), (".eh_frame", "SFrame")):
        run(tools_for("amd64", 3) / "objcopy", "-R", section, "-R", f".rela{section}", program, f"{program}{section}")
        assert main(["verify", "--against", "code", f"{program}{section}"]) == 1
        first, *rest = capsys.readouterr().out.splitlines()
        assert first.endswith(f"8 instructions: {table} 6 proved, 2 wrong, 0 unknown")
        assert [line.rpartition("; ")[2] for line in rest] == [f"{table} says rsp + 8"]


def test_members_of_an_archive(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = program.with_suffix(".a")
    run("ar", "rc", archive, program)
    assert main(["verify", "--against", "code", str(archive)]) == 1
    assert capsys.readouterr().out.startswith(f"{archive}(two.o): code of 2 functions")


def test_two_files_and_two_processes(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = shutil.copy(program, tmp_path / "copy.o")
    assert main(["verify", "--against", "code", "-j", "2", str(program), str(copy)]) == 1
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_several_processes_say_the_same_as_one() -> None:
    program = build("plt")
    found = [verify(program, Plan(dwarf=False, code=True, jobs=jobs)) for jobs in (1, 2)]
    assert found[0] == found[1]


def test_the_page(program: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main(["verify", "--against", "code", "--against", "dwarf", "--html", str(page), str(program)]) == 1
    text = page.read_text().partition('<script type="application/json" id="data">')[2].partition("</script>")[0]
    data = json.loads(text)
    (file,) = data["files"]
    by_name = {name: (judged, lines) for name, _, _, _, _, _, judged, *lines in file["functions"]}
    assert data["outcomes"][by_name["wrong"][0]] == "wrong by the code"
    assert by_name["right"] == (-1, [])
    ((_, _, *texts),) = by_name["wrong"][1][0]
    said = [data["texts"][text] for text in texts]
    assert said == ["rsp + 8", "", "", "rsp + 8", "", "", "CFA = rsp + 16 since `push %rbx` at .text+0x0", "", ""]


def test_the_page_has_a_colour_for_each_outcome() -> None:
    text = TEMPLATE.read_text(encoding="utf-8")
    colours = re.findall(r'"(--[\w-]+)"', text.partition("const COLOURS = [")[2].partition("]")[0])
    assert len(colours) == len(OUTCOMES) == len(set(colours))
    by_outcome = dict(zip(OUTCOMES, colours))
    assert by_outcome["wrong by the code"] == "--wrong-by-code"
    assert by_outcome["unknown"] == "--unknown"
    for colour in colours:
        assert len(re.findall(rf"{colour}: #[0-9a-f]{{6}};", text)) == 2, colour  # light and dark


def test_the_page_in_a_browser(program: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main(["verify", "--against", "code", "--against", "dwarf", "--html", str(page), str(program)]) == 1
    shown = render(page, script=PIXELS)
    table = shown.by_id("disagreements").all("table")[0]
    titles, _, line = table.all("tr")
    assert [cell.text for cell in titles.all("th")] == ["address", "SFrame", "DWARF CFI", "machine code"]
    said = "CFA = rsp + 16 since `push %rbx` at .text+0x0"
    assert [cell.text for cell in line.all("td")] == ["+0x1", "rsp + 8", "", "", "rsp + 8", "", "", said, "", ""]
    found = dict(zip(OUTCOMES, json.loads(shown.by_id("result").text)["found"]))
    # The two functions are of one size.
    assert found["wrong by the code"] == pytest.approx(found["agrees"], rel=0.1)
    assert found["wrong by the code"] > 1000


def test_why_it_is_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = "    push    %rbp\n    .cfi_def_cfa_offset 16\n    .cfi_offset %rbp,-16\n    mov %rsp,%rbp\n"
    body += "    .cfi_def_cfa_register %rbp\n    mov (%rdi),%rsp\n    mov %rcx,(%rsp)\n1:  jmp 1b\n    .cfi_endproc\n"
    path = assemble("amd64", f"    .globl f\nf:\n    .cfi_startproc\n{body}", tmp_path / "f.o")
    arguments = ["verify", "--against", "code", str(path)]
    assert main(arguments) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.endswith("DWARF 4 proved, 0 wrong, 1 unknown")
    assert main([*arguments, "--why-unknown"]) == 0
    *_, last = capsys.readouterr().out.splitlines()
    why = "where the return address is, is not known since `mov %rcx,(%rsp)` at .text+0x7"
    assert last == f"  unknown: .text+0xb f+0xb: 1 instruction (DWARF): {why}"
    assert main([*arguments, "--why-unknown", "--json"]) == 0
    (file,) = json.loads(capsys.readouterr().out)["files"]
    found = [one for one in file["code"]["unknown"] if one["table"] == "dwarf"]
    place = {"address": 11, "section": ".text", "function": "f+0xb"}
    assert found == [{**place, "table": "dwarf", "why": why, "instructions": 1}]


def test_counts_and_findings_are_of_the_same_instructions(program: Path) -> None:
    """The four counts of a table add up to all instructions, and the findings and reasons agree with them.

    A table has findings exactly if instructions are counted as wrong, and as many instructions with a reason as are
    counted as unknown.
    """
    for path in (program, build("plt"), build("free_walk")):
        code = verify(path, Plan(dwarf=False, code=True, why_unknown=True)).code
        assert code is not None
        for table, counts in code.counts.items():
            assert sum(counts) == code.instructions
            assert min(counts) >= 0
            assert (counts.wrong > 0) == any(one.table == table and not one.assumes for one in code.findings)
            assert counts.unknown == sum(one.instructions for one in code.unknown or () if one.table == table)


def test_a_baseline(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = tmp_path / "known.json"
    arguments = ["verify", "--against", "code", str(program)]
    assert main([*arguments, "--write-baseline", str(known)]) == 0
    capsys.readouterr()
    assert main([*arguments, "--baseline", str(known)]) == 0
    first, last = capsys.readouterr().out.splitlines()
    assert "2 wrong" in first
    assert last == "  known by the baseline: 2 findings"
    text = known.read_text()
    known.write_text(text.replace('"wrong"', '"right"'))
    assert main([*arguments, "--baseline", str(known)]) == 1
    capsys.readouterr()
    known.write_text(text.replace("verify baseline", "lint baseline"))
    assert main([*arguments, "--baseline", str(known)]) == 2
    assert "not a baseline" in capsys.readouterr().err


def test_a_baseline_of_disagreements(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known, program = str(tmp_path / "known.json"), str(build("plt"))
    assert main(["verify", program]) == 1
    assert main(["verify", program, "--write-baseline", known]) == 0
    capsys.readouterr()
    assert main(["verify", program, "--baseline", known]) == 0
    assert "known by the baseline: " in capsys.readouterr().out


def test_without_the_extra(program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(lifting, "find_spec", lambda _: None)
    assert main(["verify", "--against", "code", str(program)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert "pip install pyvex 'bitstring<5' capstone" in line


def test_extra_that_cannot_be_loaded(program: Path, tmp_path: Path) -> None:
    """A debugger's Python can have another version of cffi's library than the environment with the plugin."""
    (tmp_path / "pyvex.py").write_text("raise Exception('Version mismatch')\n")
    for command in (["verify", "--against", "code"], ["survey", "--against", "code", "--store", tmp_path / "store"]):
        done = subprocess.run(
            [sys.executable, "-m", "sframe_unwind", *map(str, command), str(program)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(CHECKOUT)))},
            capture_output=True,
            text=True,
            timeout=HANG,
            check=False,
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (
            "sframe-unwind: this needs the package pyvex, which cannot be loaded: Version mismatch\n"
        )


def test_what_was_seen_before_is_not_interpreted_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"same_{number}" for number in range(20)]
    source = "".join(FUNCTION.format(name=name, directive=RIGHT) for name in names)
    runs = []
    original = Interpreter.run

    def counting(self: Interpreter, *arguments: object, **named: object) -> object:
        runs.append(arguments)
        return original(self, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Interpreter, "run", counting)
    verdict = verify(assemble("amd64", source, tmp_path / "same.o"), Plan(dwarf=False, code=True))
    assert len(runs) == 1
    assert verdict.code is not None
    assert verdict.code.functions == 20
    assert verdict.code.counts["sframe"].proved == 80


def test_addresses_of_objects_are_of_their_sections(program: Path) -> None:
    verdict = verify(program, Plan(dwarf=False, code=True))
    assert verdict.code is not None
    assert verdict.code.findings[0].spot == FileAddress(".text", 1, True)


def test_user_without_a_name(tmp_path: Path) -> None:
    """`docker run --user 1234`: pyvex asks for the user's name, which no variable and no entry of a database has."""
    script = (
        "import pwd; from sframe_unwind.code.decode.lifting import check_installed\n"
        "def unknown(uid): raise KeyError(f'getpwuid(): uid not found: {uid}')\n"
        "pwd.getpwuid = unknown; check_installed(); print('installed')"
    )
    named = ("LOGNAME", "USER", "LNAME", "USERNAME")
    environment = {name: value for name, value in os.environ.items() if name not in named}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=HANG, cwd=tmp_path
    )
    assert (done.stdout, done.stderr) == ("installed\n", "")
