"""SFrame that is made from machine code alone, against CFI that the code did not see, and in a debugger."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from lab.code.from_code import DIFFERENT, EQUAL, NOT_KNOWN, OTHER_FORM, compared
from sframe_unwind.cli import main
from sframe_unwind.convert.from_code import NO_TYPE
from sframe_unwind.convert.kinds import CODE, DWARF_AND_CODE
from sframe_unwind.convert.to_sframe import Wanted, convert_to_sframe
from sframe_unwind.elf import opened
from sframe_unwind.sframe.constants import PauthKey
from sframe_unwind.unwind_rule import UnwindRule
from sframe_unwind.verify import Plan, verify
from tests.abis.debuggers import DEBUGGERS, debugger
from tests.code.assembled import linked
from tests.gdb.driver import batch
from tests.hanging import HANG
from tests.missing import toolchain_needed
from tests.samples.build import build
from tests.samples.catalogue import ABIS
from tools.binutils import provide

SOURCE = Path(__file__).with_name("undescribed.c")
FLAGS = ("-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-fcf-protection=none")
WITHOUT_CFI = ("-fno-asynchronous-unwind-tables", "-fno-unwind-tables")
LIBRARY = Path("/usr/lib/x86_64-linux-gnu/libz.so.1")


def compiled(folder: Path, *flags: str) -> Path:
    program = folder / ("without" if flags else "with")
    subprocess.run(["gcc", *FLAGS, *flags, "-o", program, SOURCE], check=True, timeout=HANG)
    return program


def frames(shown: str) -> list[str]:
    """Return the names of the functions up to ``main``."""
    names = re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in )?(\w+) \(", shown, re.MULTILINE)
    return names[: names.index("main") + 1] if "main" in names else names


@pytest.mark.parametrize("name", ["free_walk", "free_leaf"])
@pytest.mark.parametrize("abi", sorted(ABIS))
def test_rows_are_those_of_the_compiler(name: str, abi: str) -> None:
    for with_symbols in (True, False):
        with opened(build(name, abi)) as binary:
            found = compared(binary, with_symbols)
        assert found.functions == found.found
        assert found.differences == []
        assert found.misplaced == []
        assert found.instructions[EQUAL] > 50 * (found.instructions[NOT_KNOWN] // 10)


@pytest.mark.parametrize("with_symbols", [True, False])
def test_a_library_of_the_system(with_symbols: bool) -> None:
    with opened(LIBRARY) as binary:
        found = compared(binary, with_symbols)
    total = sum(found.instructions.values())
    assert total > 10_000
    assert found.found >= 0.9 * found.functions
    assert found.misplaced == []
    assert found.instructions[DIFFERENT] == 0
    assert found.instructions[EQUAL] + found.instructions[OTHER_FORM] >= 0.99 * total


@pytest.mark.parametrize("name", DEBUGGERS)
def test_stack_of_a_program_that_nobody_described(name: str, tmp_path: Path) -> None:
    commands = ("break stop_here", "run", "bt")
    expected = frames(batch(debugger(name, "amd64"), *commands, executable=compiled(tmp_path)))
    assert expected == ["stop_here", "aligned", "varied", *["descend"] * 4, "main"]
    program, copy = compiled(tmp_path, *WITHOUT_CFI), tmp_path / "copy"
    convert_to_sframe(program, copy, Wanted(source=CODE))
    shown = batch(debugger(name, "amd64"), *commands, "sframe bt", executable=copy)
    assert frames(shown) == expected
    assert len(re.findall(r"^#\d.* (?:descend|varied|aligned)\b.* sframe$", shown, re.MULTILINE)) == 6


def test_only_what_the_cfi_lacks_comes_from_the_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, copy = compiled(tmp_path, *WITHOUT_CFI), tmp_path / "copy"
    # The start-up code has CFI.
    assert main(["convert", str(program), "-o", str(copy), "--from", "cfi,code", "--json"]) in (0, 1)
    report = json.loads(capsys.readouterr().out)
    by_cfi, by_code = report["shares"]
    assert (by_cfi["kind"], by_code["kind"]) == ("dwarf", "code")
    assert by_cfi["functions"] > 0
    with opened(program) as binary:
        described = {start for start, _ in binary.cfi.ranges()}
        named = {symbol.name: symbol.address for symbol in binary.symbols}
    assert {"aligned", "varied", "descend", "main"} <= {name for name, start in named.items() if start not in described}
    with opened(copy) as binary:
        by_start = {function.start for section in binary.sframe for function in section.functions()}
    assert {named[name] for name in ("aligned", "varied", "descend", "main", "stop_here")} <= by_start
    assert report["made"].endswith("from DWARF CFI and the machine code")


def test_the_code_proves_each_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, copy = compiled(tmp_path), tmp_path / "copy"
    report = convert_to_sframe(program, copy, Wanted(source=DWARF_AND_CODE))
    assert report.shares
    assert main(["verify", "--against", "code", "--json", str(copy)]) == 0
    found = json.loads(capsys.readouterr().out)
    counts = found["files"][0]["code"]["sframe"] if "files" in found else found["code"]["sframe"]
    assert counts["wrong"] == 0
    assert counts["proved"] > 0


def test_what_is_no_kind_of_unwind_data(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["convert", "file", "-o", "out", "--from", "guess"])
    assert "expected dwarf, sframe, code or dwarf,code" in capsys.readouterr().err


def test_code_without_a_row_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = """
        .globl f
        .type f, @function
    f:  push %rbx
        call g
        pop %rbx
        ret
        mov %rax, %rdi
        .size f, .-f
    g:  ret
        .type g, @function
        .size g, .-g
    """
    program = tmp_path / "program.so"
    command = ["gcc", "-shared", "-nostdlib", "-x", "assembler", "-o", str(program), "-"]
    subprocess.run(command, input=source, text=True, check=True, timeout=HANG)
    with opened(program) as binary:
        start = next(symbol.address for symbol in binary.symbols if symbol.name == "f")
    assert main(["convert", str(program), "-o", str(tmp_path / "copy"), "--from", "code", "--json"]) == 1
    losses = json.loads(capsys.readouterr().out)["losses"]
    assert [(loss["address"], loss["size"]) for loss in losses] == [(start + 8, 3)]  # nothing leads there


def test_the_condition_code_is_no_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """After an addition, the caller's frame pointer is only an operand of what set the condition code."""
    source = "\t.globl f\n\t.type f, @function\nf:\tadd (%rdi), %rbp\n\tret\n\t.size f, .-f\n"
    library, copy = linked(source, tmp_path), tmp_path / "copy"
    with opened(library) as binary:
        start = next(symbol.address for symbol in binary.symbols if symbol.name == "f")
    assert main(["convert", str(library), "-o", str(copy), "--from", "code", "--json"]) == 1
    losses = json.loads(capsys.readouterr().out)["losses"]
    assert [(loss["address"], loss["size"]) for loss in losses] == [(start + 3, 1)]


def test_a_signal_trampoline_has_no_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trampoline = "\t.globl r\n\t.type r, @function\nr:\tmov $15, %rax\n\tsyscall\n\t.size r, .-r\n"
    other = "\t.globl f\n\t.type f, @function\nf:\tret\n\t.size f, .-f\n"
    library, copy = linked(trampoline + other, tmp_path), tmp_path / "copy"
    assert main(["convert", str(library), "-o", str(copy), "--from", "code", "--json"]) == 1
    assert [loss["function"] for loss in json.loads(capsys.readouterr().out)["losses"]] == ["r"]


B_KEY = """
    .globl a, b, both
    .type a, %function
a:  paciasp
    stp x29, x30, [sp, -16]!
    bl external
    ldp x29, x30, [sp], 16
    autiasp
    ret
    .size a, .-a
    .type b, %function
b:  pacibsp
    stp x29, x30, [sp, -16]!
    bl external
    ldp x29, x30, [sp], 16
    autibsp
    ret
    .size b, .-b
    .type both, %function
both:
    cbz x0, 1f
    pacibsp
    autibsp
    ret
1:  paciasp
    autiasp
    ret
    .size both, .-both
"""


def test_the_key_of_signed_return_addresses(tmp_path: Path) -> None:
    """Each entry has the key of its code; code with both keys becomes two entries."""
    with toolchain_needed():
        tools = provide("2.47", "aarch64")
    (tmp_path / "f.s").write_text(B_KEY)
    library, copy = tmp_path / "f.so", tmp_path / "copy"
    for command in (["as", "-o", "f.o", "f.s"], ["ld", "-shared", "-o", "f.so", "f.o"]):
        subprocess.run([tools / command[0], *command[1:]], cwd=tmp_path, check=True, timeout=HANG)
    convert_to_sframe(library, copy, Wanted(source=CODE))
    with opened(copy) as binary:
        keys = [
            (binary.function_name(function.start), function.fde.pauth_key)
            for section in binary.sframe
            for function in section.functions()
            if any(rule.ra_signed for _, rule in function.rows())
        ]
    assert keys == [("a", PauthKey.A), ("b", PauthKey.B), ("both", PauthKey.B), ("both+0x14", PauthKey.A)]
    report = verify(copy, Plan(dwarf=False, code=True)).code
    assert report is not None
    assert (report.counts["sframe"].wrong, report.counts["sframe"].unknown) == (0, 0)


DESCRIBED = """
    .globl wrong, right, none
    .type wrong, @function
wrong:
    .cfi_startproc
    push %rbx
    .cfi_def_cfa_offset 24  # 16 is right
    call right
    pop %rbx
    .cfi_def_cfa_offset 8
    ret
    .cfi_endproc
    .size wrong, .-wrong
    .type right, @function
right:
    .cfi_startproc
    push %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    mov %rsp, %rbp  # CFI may go on with %rsp
    pop %rbp
    .cfi_def_cfa_offset 8
    .cfi_restore %rbp
    ret
    .cfi_endproc
    .size right, .-right
    .type none, @function
none:
    sub $24, %rsp
    call right
    add $24, %rsp
    ret
    .size none, .-none
"""


def rows_of(path: Path) -> dict[str, list[tuple[int, UnwindRule]]]:
    """Return the rows of each function by SFrame."""
    with opened(path) as binary:
        functions = [function for section in binary.sframe for function in section.functions()]
        return {binary.function_name(function.start): function.rows() for function in functions}


def test_cfi_that_the_code_proves_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    library, copy, by_cfi = linked(DESCRIBED, tmp_path), tmp_path / "copy", tmp_path / "by_cfi"
    assert main(["convert", str(library), "-o", str(by_cfi), "--from", "cfi", "--json"]) == 0
    assert main(["convert", str(library), "-o", str(copy), "--from", "cfi,code", "--json"]) == 0
    first, report = map(json.loads, capsys.readouterr().out.splitlines())
    assert "replaced" not in first
    (replaced,) = report["replaced"]
    assert replaced["function"] == "wrong"
    assert re.fullmatch("at 0x[0-9a-f]+, cfa rsp \\+ 24; by the code, CFA = rsp \\+ 16", replaced["reason"])
    found, before = rows_of(copy), rows_of(by_cfi)
    assert [(offset, rule.cfa and rule.cfa.offset) for offset, rule in found["wrong"]] == [(0, 8), (1, 16), (7, 8)]
    assert [(offset, rule.cfa and rule.cfa.offset) for offset, rule in found["none"]] == [(0, 8), (4, 32), (13, 8)]
    assert found["right"] == before["right"]  # the code alone would take %rbp
    assert "none" not in before
    assert main(["convert", str(library), "-o", str(copy), "--from", "cfi,code"]) == 0
    assert "  not from DWARF CFI, which the code proves wrong: " in capsys.readouterr().out


def test_what_the_code_does_not_know_of_wrong_cfi(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """CFI is used there, since it is not proved wrong there."""
    source = """
        .globl f
        .type f, @function
    f:  .cfi_startproc
        push %rbx
        .cfi_def_cfa_offset 24
        pop %rbx
        .cfi_def_cfa_offset 8
        ret
        ud2
        lea (%rax), %rdx
        ret
        .cfi_endproc
        .size f, .-f
    """
    library, copy = linked(source, tmp_path), tmp_path / "copy"
    assert main(["convert", str(library), "-o", str(copy), "--from", "cfi,code", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [one["function"] for one in report["replaced"]] == ["f"]
    found = rows_of(copy)
    assert [(offset, rule.cfa and rule.cfa.offset) for offset, rule in found["f"]] == [(0, 8), (1, 16), (2, 8)]
    assert [rule.cfa and rule.cfa.offset for _, rule in found["f+0x3"]] == [8]


LGDR = """
    .globl f
    .type f, %function
f:  .cfi_startproc
    ldgr %f0, %r15
    .cfi_register 15, 16
    lay %r15, -168(%r15)
    .cfi_def_cfa_offset 328
    stg %r2, 160(%r15)
    .cfi_def_cfa_offset 160  # GCC 12: too early
    lghi %r2, 0
    lgdr %r15, %f0
    .cfi_restore 15
    br %r14
    .cfi_endproc
    .size f, .-f
"""


def test_what_gcc_writes_for_s390x(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with toolchain_needed():
        tools = provide("2.47", "s390x")
    (tmp_path / "f.s").write_text(LGDR)
    for command in (["as", "-o", "f.o", "f.s"], ["ld", "-shared", "-o", "f.so", "f.o"]):
        subprocess.run([tools / command[0], *command[1:]], cwd=tmp_path, check=True, timeout=HANG)
    library, copy = tmp_path / "f.so", tmp_path / "copy"
    assert main(["convert", str(library), "-o", str(copy), "--from", "cfi,code", "--json"]) == 0
    assert [one["function"] for one in json.loads(capsys.readouterr().out)["replaced"]] == ["f"]
    offsets = [(offset, rule.cfa and rule.cfa.offset) for offset, rule in rows_of(copy)["f"]]
    assert offsets == [(0, 160), (10, 328), (24, 160)]


def test_what_the_rules_rest_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    library = linked(DESCRIBED, tmp_path)
    assert main(["convert", str(library), "-o", str(tmp_path / "copy"), "--from", "cfi,code", "--json"]) == 0
    shares = {share["kind"]: share for share in json.loads(capsys.readouterr().out)["shares"]}
    assert shares["dwarf"].keys() == {"kind", "functions", "code_bytes"}
    # Before and after the calls in `wrong` and `none`; the row at each call is also that of the instruction after it.
    assert (shares["code"]["proved"], shares["code"]["by_abi"]) == (2, 4)
    assert main(["convert", str(library), "-o", str(tmp_path / "copy"), "--from", "code"]) == 0
    assert re.search("; [0-9]+ rules by the function alone, [0-9]+ after a call, which", capsys.readouterr().out)


def test_code_whose_symbol_has_no_type(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Linux's entry code has such symbols: it is described only if something calls it."""
    source = """
        .globl f, called, entry
        .hidden called, entry
        .type f, @function
    f:  push %rbx
        lea entry(%rip), %rbx  # as for a register of the processor
        call called
        pop %rbx
        ret
        .size f, .-f
    called:
        push %rax
        pop %rax
        ret
        .size called, .-called
    entry:
        push %rax
        pop %rax
        iretq
        .size entry, .-entry
        .data
        .quad entry
    """
    library, copy = linked(source, tmp_path), tmp_path / "copy"
    assert main(["convert", str(library), "-o", str(copy), "--from", "code", "--json"]) == 1
    (loss,) = json.loads(capsys.readouterr().out)["losses"]
    assert (loss["function"], loss["reason"]) == ("entry", NO_TYPE)
    assert {"f", "called"} <= rows_of(copy).keys()
