"""``sframe-unwind annotate``: the listing, its JSON, and which functions it is about."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from sframe_unwind.cli import main
from tests.abis.debuggers import DEBUGGERS, debugger
from tests.annotate.assembling import assembled, assembler, patched, written
from tests.annotate.sources import SOURCES, function
from tests.gdb.driver import batch
from tests.hanging import HANG

TWO = function("f", "push %rbx\ncall other\npop %rbx\nret") + function("leaf", "ret")
LISTING = """\
f (.text+0x0, 8 bytes):
            .cfi_startproc
         0      push %rbx
            .cfi_def_cfa_offset 16
            .cfi_offset %rbx, -16
         1      call 0x6 <f+0x6>  # R_X86_64_PLT32 other-0x4
         6      pop %rbx
            .cfi_def_cfa_offset 8
            .cfi_restore %rbx
         7      ret
            .cfi_endproc

leaf (.text+0x8, 1 byte):
            .cfi_startproc
         8      ret
            .cfi_endproc
"""
PROGRAM = """
long other(long), calls_other(long);
long other(long value) { return value + 1; }
int main(void)
{
    register long kept asm("rbx") = 0x1234;
    asm volatile("" : "+r"(kept));
    long found = calls_other(1);
    asm volatile("" : "+r"(kept));
    return found == kept;
}
"""


def test_listing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["annotate", str(assembled("amd64", written(tmp_path, TWO)))]) == 0
    assert capsys.readouterr().out == LISTING


def test_one_function(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = str(assembled("amd64", written(tmp_path, TWO)))
    assert main(["annotate", made, "leaf"]) == 0
    assert capsys.readouterr().out == LISTING.partition("\n\n")[2]
    assert main(["annotate", made, "no_such_function"]) == 2


@pytest.mark.parametrize("machine", SOURCES)
def test_json(machine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = assembled(machine, written(tmp_path, SOURCES[machine]))
    assert main(["annotate", "--json", str(made)]) == 0
    found = json.loads(capsys.readouterr().out)["functions"]
    for one in found:
        assert one["directives"][0]["directives"][0] == ".cfi_startproc"
        assert one["directives"][0]["address"] == one["start"]
        assert one["directives"][-1]["directives"] == [".cfi_endproc"]
        assert one["directives"][-1]["address"] == one["start"] + one["size"]
        assert one["rules"]["proved"] > 0
    by_name = {one["name"]: one["rules"] for one in found}
    assert by_name["leaf"] == {"proved": 1, "by_abi": 0}
    assert by_name["two_exits"]["by_abi"] > 0


def test_what_has_cfi_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    described = function(
        "g", ".cfi_startproc\npush %rax\n.cfi_def_cfa_offset 16\npop %rax\n.cfi_def_cfa_offset 8\nret\n.cfi_endproc"
    )
    made = assembled("amd64", written(tmp_path, TWO + described))
    assert main(["annotate", str(made)]) == 0
    assert capsys.readouterr().out == f"{LISTING}\n1 function with CFI is left alone\n"
    assert main(["annotate", str(made), "g"]) == 0
    assert capsys.readouterr().out == "g (.text+0x9, 3 bytes): it has CFI already\n"


def test_code_that_tells_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    switches = function("switches", "mov %rsp, (%rdi)\nmov %rsi, %rsp\npop %rbx\nret")
    made = assembled("amd64", written(tmp_path, TWO + switches))
    assert main(["annotate", "--json", str(made)]) == 1
    found = {one["name"]: one for one in json.loads(capsys.readouterr().out)["functions"]}
    assert found["f"]["gaps"] == []
    assert [(one["start"], one["size"]) for one in found["switches"]["gaps"]] == [(15, 2)]
    assert main(["annotate", str(made), "switches"]) == 1
    assert "  no directives for .text+0xf, 2 bytes\n" in capsys.readouterr().out


def test_a_signal_trampoline_is_not_entered_by_a_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    restorer = function("restore_rt", "mov $15, %rax\nsyscall")
    made = assembled("amd64", written(tmp_path, TWO + restorer))
    assert main(["annotate", "--json", str(made)]) == 1
    found = {one["name"]: one["directives"] for one in json.loads(capsys.readouterr().out)["functions"]}
    assert found["restore_rt"] == []
    assert found["f"]


def test_functions_without_type_and_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "\t.globl f\nf:\tpush %rbx\n\tcall 1f\n\tpop %rbx\n\tret\n1:\tpush %rax\n\tpop %rax\n\tret\n"
    source = written(tmp_path, text)
    status, patch, messages = patched("amd64", source, capsys)
    assert (status, messages) == (0, "")
    assert "# proved: the CFI of 2 functions" in patch


def test_options_that_need_others(capsys: pytest.CaptureFixture[str]) -> None:
    for options in (["--prove"], ["-p", "folder"], ["--patch", "--as", "as"]):
        assert main(["annotate", "file", *options]) == 2
        assert "has no meaning without" in capsys.readouterr().err


@pytest.mark.parametrize("name", DEBUGGERS)
def test_gdb_finds_the_callers_registers(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """GDB without the plugin, in a function that another one calls after it has changed a register and its stack."""
    body = "sub $40, %rsp\nmov %rbx, 8(%rsp)\nmov $7, %ebx\ncall other\nmov 8(%rsp), %rbx\nadd $40, %rsp\nret"
    source = written(tmp_path, function("calls_other", body) + '\t.section .note.GNU-stack,"",@progbits\n')
    (tmp_path / "main.c").write_text(PROGRAM)

    def caller() -> str:
        program = tmp_path / "program"
        files = map(str, (program, tmp_path / "main.c", assembled("amd64", source)))
        command = ["gcc", "-O1", "-fomit-frame-pointer", "-o", *files]
        subprocess.run(command, check=True, timeout=HANG)
        commands = ("break other", "run", "up 2", "print/x $rbx")
        return batch(debugger(name, "amd64"), *commands, executable=program, plugin=None)

    assert "$1 = 0x1234" not in caller()
    patched("amd64", source, capsys)
    found = caller()
    assert " in main ()" in found
    assert "$1 = 0x1234" in found


def test_the_assembler_and_its_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A source that includes another one, next to it."""
    written(tmp_path, "\t.macro SAVE\n\tpush %rbx\n\t.endm\n", "macros.inc")
    source = written(tmp_path, '\t.include "macros.inc"\n' + function("f", "SAVE\npop %rbx\nret"))
    made = assembled("amd64", source, "-I", str(tmp_path))
    command = shlex.join(assembler("amd64", "-g"))
    assert main(["annotate", "--patch", "--prove", "--as", command, str(made)]) == 0
    assert "+\t.cfi_def_cfa_offset 16\n" in capsys.readouterr().out


def test_data_among_the_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table that a function reads is none itself."""
    body = "lea .Ltable(%rip), %rax\nmov (%rax,%rdi,8), %rax\nret"
    source = written(tmp_path, function("f", body) + "\t.p2align 4\n.Ltable:\n\t.quad 0x9090909090c3, 1\n")
    assert main(["annotate", "--json", str(assembled("amd64", source))]) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)["functions"]] == ["f"]
