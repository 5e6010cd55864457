"""The command `show`: a wrong row is understood from its output alone, and its options do what they promise."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sframe_unwind import elf
from sframe_unwind.cli import main
from sframe_unwind.show import instructions
from sframe_unwind.verify import verify
from tests.elf.objects import run, tools_for
from tests.hanging import HANG
from tests.missing import absent, not_on_this_system, package_needed, toolchain_needed
from tests.samples.build import build

LIBC_S390X = Path("/usr/s390x-linux-gnu/lib/libc.so.6")


def shown(capsys: pytest.CaptureFixture[str], status: int, *arguments: object) -> list[str]:
    """Return the lines of the output, without blanks at their ends; check the exit status."""
    assert main(["show", *map(str, arguments)]) == status
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def found_stub() -> tuple[Path, int]:
    """Return a program whose `.plt.got` has a wrong row by GNU ld, and the address of the first stub."""
    program = build("plt")
    return program, verify(program).disagreements[0].spot.address


def test_wrong_row_of_ld_is_understood(capsys: pytest.CaptureFixture[str]) -> None:
    """The stub is one jump, and GNU ld's row describes a push (docs/verify.md)."""
    package_needed("pyvex")
    program, stub = found_stub()
    lines = shown(capsys, 1, program, f"{stub:#x}")
    assert re.fullmatch(rf"{stub:#x} <\w+@plt>, 8 bytes", lines[0])
    assert lines[1:4] == [
        "  SFrame: FDE 2 with 1 row, repeats every 8 bytes",
        "  DWARF CFI: FDE with 1 row",
        "  code: SFrame 2 wrong; DWARF CFI 2 proved",
    ]
    row, *notes = lines[6:9]
    assert row.split()[:-4] == ["!", f"{stub:x}", "rsp+16", "u", "c-8", *("rsp+8", "u", "c-8") * 2]
    assert row.split()[-4] == "jmp"
    assert [note.strip() for note in notes] == [
        "^ CFA: rsp + 16 by SFrame, rsp + 8 by DWARF CFI; the code agrees with DWARF",
        "^ by the code, CFA = rsp + 8; SFrame says rsp + 16",
    ]


def test_an_arrow_does_not_hide_that_a_row_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    program, stub = found_stub()
    lines = shown(capsys, 1, program, f"{stub + 6:#x}", "--no-code")
    assert [line.split()[:2] for line in lines if f" {stub + 6:x} " in line] == [["!>", f"{stub + 6:x}"]]


def test_wrong_row_of_gcc_for_s390x_is_understood(capsys: pytest.CaptureFixture[str]) -> None:
    """GCC's CFA is that of its caller's frame before `lgdr` has restored the stack pointer (docs/verify.md)."""
    package_needed("pyvex")
    if not LIBC_S390X.exists():
        absent(f"{LIBC_S390X} is missing")
    lines = shown(capsys, 1, LIBC_S390X, "ether_aton_r")
    at = next(at for at, line in enumerate(lines) if line.startswith("!"))
    assert lines[at].split()[2:6] == ["r15+160", "u", "u", "!"]
    # Which of the registers is restored last differs between compilers.
    assert re.search(r"lgdr %r\d+,%f\d+$", lines[at])
    assert re.fullmatch(
        r" +\^ by the code, CFA = r15 \+ \d+ since `lay %r15,-\d+\(%r15\)` at 0x[0-9a-f]+; DWARF CFI says r15 \+ 160",
        lines[at + 1],
    )


def test_wrong_row_after_a_computed_stack_pointer_is_understood(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in OpenSSL's bit-sliced AES: no directive follows the instruction that computes the stack pointer."""
    package_needed("pyvex")
    source, path = tmp_path / "bits.s", tmp_path / "bits.o"
    source.write_text(
        ".globl bits\n.type bits, @function\nbits: .cfi_startproc\npush %rbp\n.cfi_def_cfa_offset 16\n"
        ".cfi_offset rbp, -16\nmov %rsp, %rbp\nshl $7, %rax\nsub %rax, %rsp\nmov %rsp, %rax\nleave\n"
        ".cfi_def_cfa_offset 8\nret\n.cfi_endproc\n.size bits, .-bits\n"
    )
    with toolchain_needed():
        run(tools_for("amd64", 3) / "as", "--gsframe", source, "-o", path)
    lines = shown(capsys, 1, path, "bits")
    at = next(at for at, line in enumerate(lines) if line.startswith("!"))
    assert lines[at - 1].endswith(" sub %rax,%rsp")
    said = "by the code, CFA = rbp + 16 since `sub %rax,%rsp` at .text+0x8; DWARF CFI and SFrame say rsp + 16"
    assert lines[at + 1].strip() == f"^ {said}"


def test_frame_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    program = build("plt", variant="fp")
    lines = shown(capsys, 0, program, "--at", "called_back+0x4", "--no-code", "--no-source")
    at = next(at for at, line in enumerate(lines) if line.startswith("the frame before"))
    assert lines[at].endswith(" <called_back+0x4>, by SFrame and DWARF CFI:")
    assert [line.strip() for line in lines[at + 1 :]] == [
        "+----------------+ <-- CFA",
        "CFA-8 | return address |",
        "+----------------+",
        "CFA-16 | saved rbp      |",
        "+----------------+ <-- rbp",
    ]
    assert sum(line.startswith("=>") for line in lines) == 1


def test_json_is_the_listing(capsys: pytest.CaptureFixture[str]) -> None:
    program, stub = found_stub()
    assert main(["show", str(program), f"{stub:#x}", "--json", "--no-code", "--no-source", "--at", f"{stub:#x}"]) == 1
    found = json.loads(capsys.readouterr().out)
    (function,) = found["functions"]
    assert (found["file"], function["start"], function["size"]) == (str(program), stub, 8)
    first = function["rows"][0]
    assert first["rules"] == {
        "SFrame": {"cfa": "rsp+16", "fp": "u", "ra": "c-8"},
        "DWARF CFI": {"cfa": "rsp+8", "fp": "u", "ra": "c-8"},
    }
    assert first["differs"] == ["cfa"]
    assert first["notes"] == [{"kind": "differs", "text": "CFA: rsp + 16 by SFrame, rsp + 8 by DWARF CFI"}]
    with elf.opened(program) as binary:
        code = binary.named(".plt.got")
        assert code is not None
        contents = binary.contents(code)
    assert b"".join(bytes.fromhex(row["bytes"]) for row in function["rows"]) == contents[:8]
    (frame,) = function["frames"]
    assert frame["address"] == stub
    assert [mark["text"] for mark in frame["pictures"][0]["marks"]] == ["CFA by SFrame", "CFA by DWARF CFI", "rsp"]


def test_picture_by_a_rule_that_the_code_refutes_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    package_needed("pyvex")
    program, stub = found_stub()
    title = next(line for line in shown(capsys, 1, program, "--at", f"{stub:#x}") if line.startswith("the frame"))
    assert title.endswith("@plt>, by SFrame and DWARF CFI; the code refutes the CFA by SFrame:")
    assert main(["show", str(program), "--json", "--at", f"{stub:#x}"]) == 1
    (frame,) = json.loads(capsys.readouterr().out)["functions"][0]["frames"]
    assert [picture["refuted"] for picture in frame["pictures"]] == [[{"table": "SFrame", "what": "cfa"}]]


def rules_at_each(capsys: pytest.CaptureFixture[str], column: str, *arguments: object) -> dict[int, dict[str, str]]:
    """Return the rule of a column at each instruction of a function."""
    assert main(["show", *map(str, arguments), "--json"]) == 0
    found: dict[int, dict[str, str]] = {}
    rule: dict[str, str] = {}
    for row in json.loads(capsys.readouterr().out)["functions"][0]["rows"]:
        rule = row.get("rules", {}).get(column, rule)
        found[row["address"]] = rule
    return found


@pytest.mark.parametrize("abi", ["amd64", "aarch64", "s390x"])
@pytest.mark.parametrize("function", ["leaf", "innermost", "large_frame"])
def test_code_has_the_rows_of_a_file_without_tables(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, abi: str, function: str
) -> None:
    """They are those of the compiler's CFI of the same program, from which all tables are removed here.

    A value that is both in its register and saved has one of two places: the code and the compiler choose differently.
    """
    package_needed("pyvex")
    program, bare = build("free_walk", abi), tmp_path / "bare"
    sections = (".sframe", ".eh_frame", ".eh_frame_hdr")
    run(tools_for(abi, 3) / "objcopy", *(f"--remove-section={name}" for name in sections), program, bare)
    expected = rules_at_each(capsys, "DWARF CFI", program, function, "--no-code")
    found = rules_at_each(capsys, "code", bare, function)
    assert found.keys() == expected.keys()
    for at, rule in expected.items():
        saved = {what: place for what, place in rule.items() if "u" not in (place, found[at][what])}
        assert "cfa" in saved
        assert {what: found[at][what] for what in saved} == saved, hex(at)
    assert not any(rules_at_each(capsys, "DWARF CFI", bare, function).values())


def test_function_that_no_table_and_no_code_describes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A trap follows a stack pointer that was loaded: no rule is known after that, and the column shows it."""
    package_needed("pyvex")
    source = tmp_path / "lost.s"
    source.write_text(".globl f\n.type f,%function\nf: mov (%rax), %rsp\nhlt\n.size f,.-f\n")
    run(tools_for("amd64", 3) / "as", "-o", tmp_path / "lost.o", source)
    lines = shown(capsys, 0, tmp_path / "lost.o", "f")
    assert lines[3].startswith("  code: no table")
    assert [line.split()[1:4] for line in lines[6:]] == [["rsp+8", "u", "c-8"], ["?", "?", "?"]]


def test_nobody_reads_the_output() -> None:
    """The command ends without a message when the reader of its output ends, as in ``show FILE | head``."""
    reading, writing = os.pipe()
    os.close(reading)
    words = [sys.executable, "-m", "sframe_unwind", "show", str(build("free_walk"))]
    done = subprocess.run(words, stdout=writing, stderr=subprocess.PIPE, timeout=HANG, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_source_lines(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, 0, build("callback"), "main", "--no-code")
    source = [line.strip() for line in lines if "callback.c:" in line]
    assert len(source) > 2
    text = (Path(__file__).parents[1] / "samples" / "callback.c").read_text(encoding="utf-8").splitlines()
    for line in source:
        number, shown_text = re.search(r"callback\.c:(\d+)(?: in \w+)?   (.*)", line).groups()  # type: ignore[union-attr]
        assert text[int(number) - 1].strip() == shown_text


@pytest.mark.parametrize(
    ("abi", "kind"), [("amd64", "R_X86_64_P"), ("aarch64", "R_AARCH64_CALL26"), ("s390x", "R_390_P")]
)
def test_relocations_of_an_object_file_are_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, abi: str, kind: str
) -> None:
    with toolchain_needed():
        tools = tools_for(abi, 3)
    source = tmp_path / "object.s"
    call = {"amd64": "call elsewhere@PLT", "aarch64": "bl elsewhere", "s390x": "brasl %r14,elsewhere@PLT"}[abi]
    source.write_text(
        f".text\n.globl f\n.type f,%function\nf: .cfi_startproc\n{call}\n{call}\n.cfi_endproc\n.size f,.-f\n"
    )
    run(tools / "as", "--gsframe", "-o", tmp_path / "object.o", source)
    lines = shown(capsys, 0, tmp_path / "object.o", "f", "--no-code")
    assert lines[0].startswith(".text+0x0 <f>, ")
    named = [line.split() for line in lines if "elsewhere" in line]
    assert len(named) == 2
    assert all(name.startswith(kind) and symbol.startswith("elsewhere") for name, symbol in named)


def test_without_capstone_there_are_bytes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instructions, "decoder", lambda *_: None)
    program, stub = found_stub()
    lines = shown(capsys, 1, program, f"{stub:#x}", "--no-code", "--no-source")
    assert re.fullmatch(
        rf"!  {stub:x}  rsp\+16   u     c-8     rsp\+8    u     c-8    ff 25( [0-9a-f]{{2}}){{6}}", lines[5]
    )
    lines = shown(capsys, 0, program, "called_back", "--no-code", "--no-source")
    monkeypatch.undo()
    with_texts = shown(capsys, 0, program, "called_back", "--no-code", "--no-source")

    def rules(lines: list[str]) -> list[list[str]]:
        return [line.split()[:7] for line in lines if "rsp+" in line]

    assert rules(lines) == rules(with_texts) != []
    assert not any("inside" in line for line in lines)


def test_arguments_that_name_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    program = build("callback")
    assert main(["show", str(program), "nowhere", "main", "--no-code"]) == 2
    out, err = capsys.readouterr()
    assert err == f"sframe-unwind: {program}: nowhere: neither an address nor a symbol of the file\n"
    assert "<main>" in out
    empty = tmp_path / "empty"
    empty.touch()
    assert main(["show", str(empty)]) == 2
    assert capsys.readouterr().err == f"sframe-unwind: {empty}: the file is empty\n"
    with pytest.raises(SystemExit) as ended:
        main(["show", str(program), "main", "--nothing"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "sframe-unwind: show: unrecognized arguments: --nothing (try sframe-unwind show --help)\n"
    )


def at_a_terminal(arguments: list[str], **environment: str) -> str:
    """Return what the command prints at a terminal."""
    leader, follower = pty.openpty()
    variables = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "PAGER", "LESS")}
    child = subprocess.Popen(
        [sys.executable, "-m", "sframe_unwind", "show", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=follower,
        env={**variables, "TERM": "xterm", **environment},
    )
    os.close(follower)
    pieces = []
    while True:
        try:
            piece = os.read(leader, 4096)
        except OSError:  # EIO: the other end is closed
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(leader)
    child.wait(HANG)
    return b"".join(pieces).decode()


def test_colours_and_pager_are_those_of_a_terminal(tmp_path: Path) -> None:
    program = str(build("callback"))
    plain = [program, "main", "--no-code", "--no-source"]
    pager = tmp_path / "pager"
    pager.write_text('#!/bin/sh\necho "paged, LESS=$LESS"\ncat\n')
    pager.chmod(0o755)
    paged = at_a_terminal(plain, PAGER=str(pager))
    assert paged.startswith("paged, LESS=FRX\r\n\x1b[1;33m0x")
    assert "paged" not in at_a_terminal([*plain, "--no-pager"], PAGER=str(pager))
    coloured = at_a_terminal(plain, PAGER="cat")
    assert "\x1b[36mrsp+8" in coloured
    without = at_a_terminal(plain, PAGER="", NO_COLOR="1")
    assert "\x1b" not in without
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured).replace(" ", "") == without.replace(" ", "")
    assert at_a_terminal(plain, PAGER=str(pager), TERM="dumb") == without
    assert at_a_terminal([program, "no_such_function"], PAGER=str(pager)) == ""


def test_pager_that_is_no_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    program = str(build("callback"))
    monkeypatch.setenv("PAGER", "less '")
    assert main(["show", program, "main", "--no-code"]) == 2
    said = 'PAGER: expected a command, found "less \'": No closing quotation'
    assert capsys.readouterr().err == f"sframe-unwind: {said}\n"


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_full_disk_is_not_an_error_of_the_file(form: tuple[str, ...]) -> None:
    """The output is written while the file is open, in which reading fails with other errors."""
    if not Path("/dev/full").exists():
        not_on_this_system("no /dev/full, which a full disk stands for")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "sframe_unwind", "show", str(build("plt")), "--bytes", *form],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=HANG,
            check=False,
        )
    assert (done.returncode, done.stderr) == (2, "sframe-unwind: cannot write: No space left on device\n")
