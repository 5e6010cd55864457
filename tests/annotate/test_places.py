"""Where directives are inserted in a source, and where they cannot be."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from sframe_unwind.annotate.data_lines import data_of
from sframe_unwind.annotate.source_text import COMMENT, CONTINUED, MACRO, SourceText
from sframe_unwind.cli import main
from tests.annotate.assembling import apply, assembled, assembler, patched, rules, written
from tests.annotate.sources import function
from tests.hanging import HANG

KERNEL = Path(__file__).with_name("kernel.S")


def preprocessed(folder: Path, capsys: pytest.CaptureFixture[str], *functions: str) -> tuple[int, str, Path]:
    """Annotate a copy of the kernel's source; return the exit status, the messages and the copy."""
    source = folder / KERNEL.name
    shutil.copyfile(KERNEL, source)
    # gcc finds the assembler in the folder that -B names.
    command = ["gcc", "-c", "-g", "-fno-pie", "-B", str(Path(assembler("amd64")[0]).parent)]
    subprocess.run([*command, "-o", folder / "k.o", source], check=True, timeout=HANG)
    arguments = ["annotate", "--patch", "-p", str(folder), "--prove", "--as", shlex.join(command)]
    status = main([*arguments, str(folder / "k.o"), *functions])
    patch, messages = capsys.readouterr()
    apply(patch, folder)
    subprocess.run([*command, "-o", folder / "k.o", source], check=True, timeout=HANG)
    return status, messages, source


def test_assembly_of_a_kernel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, messages, source = preprocessed(tmp_path, capsys)
    assert status == 1
    assert set(rules(tmp_path / "k.o")) == {"plain", "by_macro", "described"}
    text = source.read_text()
    assert "\tSAVE\t%rbx\n\t.cfi_def_cfa_offset 16\n\t.cfi_offset %rbx, -16\n\tSAVE\t%r12\n" in text
    # Not in the middle of the comment.
    assert "\tpush\t%rbx\n\t/* A comment\n\t   of two lines. */\n\t.cfi_def_cfa_offset 16\n" in text
    lines = messages.splitlines()
    within = KERNEL.read_text().splitlines().index("\tSAVE_TWO") + 1
    repeated = KERNEL.read_text().splitlines().index("\t.rept\t3") + 2
    assert (
        f"{source}:{within}: within_macro: .cfi_def_cfa_offset 16; .cfi_offset %rbx, -16 cannot be inserted" in messages
    )
    assert f"{source}:{repeated}: repeated: .cfi_startproc cannot be inserted: {MACRO}" in messages
    assert any(
        "entered_by_hardware: its symbol has a size and no type, and no known call enters it; name it to annotate it"
        in line
        for line in lines
    )
    assert len(lines) == 3


def test_code_without_a_type_is_annotated_if_it_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, messages, _ = preprocessed(tmp_path, capsys, "entered_by_hardware")
    assert (status, messages) == (0, "")
    assert set(rules(tmp_path / "k.o")) == {"entered_by_hardware", "described"}


def test_several_instructions_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = written(
        tmp_path,
        function("good", "push %rbx\ncall other\npop %rbx\nret")
        + function("bad", "push %rbx; push %rbp\ncall other\npop %rbp; pop %rbx\nret")
        + function("constant", "xor %eax, %eax; nop\nret"),
    )
    before = source.read_text()
    status, patch, messages = patched("amd64", source, capsys)
    assert status == 1
    assert set(rules(assembled("amd64", source))) == {"good", "constant"}
    assert messages.count("\n") == 1
    assert (
        "f.s:12: bad: .cfi_def_cfa_offset 16; .cfi_offset %rbx, -16 cannot be inserted: it is needed between"
        in messages
    )
    assert "# proved: the CFI of 2 functions" in patch
    assert [line for line in source.read_text().splitlines() if ".cfi" not in line] == before.splitlines()


def test_instructions_that_are_written_as_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = ".byte 0xf3, 0x0f, 0x1e, 0xfa\npush %rbx\ncall other\npop %rbx\n.byte 0xf3,0xc3  # rep ret\n"
    source = written(tmp_path, function("f", body) + "\t.p2align 4\n" + function("g", body))
    status, _, messages = patched("amd64", source, capsys)
    assert (status, messages) == (0, "")
    text = source.read_text()
    assert text.count("\t.cfi_startproc\n\t.byte 0xf3, 0x0f, 0x1e, 0xfa\n") == 2
    assert text.count("\tpop %rbx\n\t.cfi_def_cfa_offset 8\n\t.cfi_restore %rbx\n\t.byte 0xf3,0xc3") == 2
    assert text.count("\t.byte 0xf3,0xc3  # rep ret\n\t.cfi_endproc\n") == 2


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (".byte 0xf3,0xc3", [b"\xf3\xc3"]),
        ("label: .byte 243, 15, 30, 250  # endbr64", [b"\xf3\x0f\x1e\xfa"]),
        (".long 0x12345678", [b"\x78\x56\x34\x12"]),
        (".word 0xc24e,000000,-1", [b"\x4e\xc2\0\0\xff\xff", b"\x4e\xc2\0\0\0\0\0\0\xff\xff\xff\xff"]),
        (".byte 017", [b"\x0f"]),
        (".quad symbol", []),
        (".byte 1+2", []),
        ("push %rbx", []),
        (".globl f", []),
    ],
)
def test_data(line: str, expected: list[bytes]) -> None:
    assert data_of(line, "little") == expected


def test_what_a_line_begins_inside() -> None:
    text = SourceText(
        "\tnop /* one */ /* two\n three */ nop\n"
        "\t.macro m\n\tnop\n\t.rept 2\n\tnop\n\t.endr\n\tnop\n\t.endm\n"
        "X(1, \\\n2)\n"
    )
    found = [text.obstacle(line) for line in range(1, 13)]
    assert found == ["", COMMENT, "", *[MACRO] * 6, "", CONTINUED, ""]
    assert "which has 11 lines" in text.obstacle(13)


def test_a_file_without_line_information(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = written(tmp_path, function("f", "push %rbx\npop %rbx\nret"))
    subprocess.run([*assembler("amd64"), "-o", tmp_path / "f.o", source], check=True, timeout=HANG)
    assert main(["annotate", "--patch", str(tmp_path / "f.o")]) == 2
    assert capsys.readouterr().err == f"sframe-unwind: {tmp_path}/f.o: no line information (assemble with -g)\n"


def test_sources_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "build").mkdir()
    source = written(tmp_path / "build", function("f", "push %rbx\npop %rbx\nret"))
    made = assembled("amd64", source)
    (tmp_path / "src/arch").mkdir(parents=True)
    moved = source.rename(tmp_path / "src/arch/f.s")
    assert main(["annotate", "--patch", str(made)]) == 2
    assert capsys.readouterr().err.endswith("/build/f.s: no such file; -p tells where the sources are\n")
    assert main(["annotate", "--patch", "-p", str(tmp_path / "src/arch"), str(made)]) == 0
    assert capsys.readouterr().out.startswith("--- a/f.s\n+++ b/f.s\n")
    assert main(["annotate", "--patch", "-p", str(tmp_path / "build"), str(made)]) == 2
    assert f"/build/f.s: no such file, nor below {tmp_path}/build" in capsys.readouterr().err
    assert moved.exists()


def test_a_source_that_is_not_in_utf_8(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    source = tmp_path / "f.s"
    source.write_bytes(b"# caf\xe9\r\n\t.globl f\r\nf:\tpush %rbx\r\n\tpop %rbx\r\n\tret\r\n")
    made = assembled("amd64", source)
    assert main(["annotate", "--patch", str(made)]) == 0
    found = capfdbinary.readouterr().out
    assert b"\n # caf\xe9\r\n" in found
    assert b"\n+\t.cfi_def_cfa_offset 16\r\n" in found


def test_a_source_that_has_changed_since(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = written(tmp_path, function("f", "push %rbx\npop %rbx\nret"))
    made = assembled("amd64", source)
    source.write_text(function("f", "nop\npush %rbx\npop %rbx\nret"))
    command = shlex.join(assembler("amd64", "-g"))
    assert main(["annotate", "--patch", "--prove", "--as", command, str(made)]) == 2
    output, messages = capsys.readouterr()
    assert output == ""
    assert "f: the patched source is assembled to other code" in messages


def test_what_the_assembler_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = written(tmp_path, function("f", "push %rbx\npop %rbx\nret"))
    made = assembled("amd64", source)
    source.write_text(source.read_text().replace("ret", "no_such_instruction"))
    command = shlex.join(assembler("amd64", "-g"))
    assert main(["annotate", "--patch", "--prove", "--as", command, str(made)]) == 2
    assert "f.s (patched):11: Error: no such instruction" in capsys.readouterr().err
    missing = str(tmp_path / "no-such-assembler")
    assert main(["annotate", "--patch", "--prove", "--as", missing, str(made)]) == 2
    assert "no-such-assembler: No such file or directory" in capsys.readouterr().err
