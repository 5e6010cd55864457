"""Frames with scalable vectors (AArch64, SVE): places that depend on their length, which the register VG stands for."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from sframe_unwind.code.judge.findings import DWARF
from sframe_unwind.verify.code_report import CodeReport
from tests.code.assembled import report_on
from tests.hanging import HANG
from tests.missing import absent
from tests.samples.catalogue import ABIS

SOURCE = Path(__file__).parent / "vectors" / "vectors.c"
FLAGS = ("-O2", "-march=armv8-a+sve", "-fno-stack-protector", "-S")
"""With a stack protector GCC reads the guard by instructions that do not matter here."""
RESTORES, LOAD = r"((?:\t\.cfi_restore \d+\n)+)", r"(\tldp\tx29, x30, \[sp\]\n)"
EARLY, LATE = re.compile(RESTORES + LOAD), re.compile(LOAD + RESTORES)
SP, VG = "0x8f", "0x92,0x2e,0"
"""``DW_OP_breg31`` and ``DW_OP_bregx VG``."""
SAVED = "stp x29,x30,[sp,#-16]!;.cfi_def_cfa_offset 16;.cfi_offset 29,-16;.cfi_offset 30,-8;"
ENDS = "ldp x29,x30,[sp],#16;.cfi_def_cfa_offset 0;.cfi_restore 29;.cfi_restore 30;ret"


def cfa(granules: int, offset: int, base: str = SP) -> str:
    """Return the directive for a CFA at a register plus that many granules and bytes."""
    words = f"{base},0,{VG},0x08,{granules},0x1e,0x23,{offset},0x22"
    return f".cfi_escape 0x0f,{words.count(',') + 1},{words};"


def judged(body: str, folder: Path) -> CodeReport:
    source = f"""
        .arch armv8-a+sve
        .text
        .globl f
        .type f,%function
    f:  .cfi_startproc;{body}
        .cfi_endproc
        .size f,.-f
    """
    return report_on("aarch64", source.replace(";", "\n"), folder)


def of_frame(allocate: str, rows: str, inside: str, release: str) -> str:
    """Return a function that saves its frame pointer and return address, and allocates vectors below them."""
    return f"{SAVED}{allocate};{rows}{inside};{release};.cfi_def_cfa sp,16;{ENDS}"


def frame(inside: str) -> str:
    return of_frame("addvl sp,sp,#-2", cfa(16, 16), inside, "addvl sp,sp,#2")


PROVED = {
    "nothing": frame("nop"),
    "vectors in it": frame("str z8,[sp];str z9,[sp,#1,mul vl]"),
    "the last predicate in it": frame("str p4,[sp,#15,mul vl]"),
    "a store of elements": frame("st1d {z0.d},p0,[sp,#1,mul vl]"),
    "stores of short elements": frame("st1b {z0.d},p0,[sp,#7,mul vl];st1w {z0.d},p0,[sp,#3,mul vl]"),
    "a store of two vectors": frame("st2d {z0.d,z1.d},p0,[sp]"),
    "what is in it at the shortest length": frame("stp x0,x1,[sp,#16]"),
    "by a register": frame("addvl x9,sp,#1;str z0,[x9];str x0,[x9,#8]"),
    "by a register that counts from the end": frame("add x9,sp,#16;addvl x9,x9,#1;str z0,[x9,#-1,mul vl];sub x9,x9,#8"),
    "read": of_frame("rdvl x9,#2;sub sp,sp,x9", cfa(16, 16), "str z0,[sp,#1,mul vl]", "add sp,sp,x9"),
    "counted": of_frame("cntw x9,all,mul #4;sub sp,sp,x9", cfa(8, 16), "str p0,[sp,#7,mul vl]", "addpl sp,sp,#8"),
    "counted and shifted": of_frame("cntd x9;sub sp,sp,x9,lsl #4", cfa(16, 16), "nop", "addvl sp,sp,#2"),
    "in two steps": of_frame("addvl sp,sp,#-1;" + cfa(8, 16) + "addpl sp,sp,#-8", cfa(16, 16), "nop", "addvl sp,sp,#2"),
    "with bytes below": of_frame(
        "addvl sp,sp,#-2;" + cfa(16, 16) + "sub sp,sp,#32", cfa(16, 48), "stp x0,x1,[sp,#16];str z0,[sp]",
        "add sp,sp,#32;" + cfa(16, 16) + "addvl sp,sp,#2",
    ),
    "with a size that is not constant below": (
        SAVED + "mov x29,sp;.cfi_def_cfa x29,16;addvl sp,sp,#-2;sub sp,sp,x0;str x1,[sp];str z0,[x29,#-2,mul vl];"
        "mov sp,x29;.cfi_def_cfa sp,16;" + ENDS
    ),
    "the return address below": (
        "addvl sp,sp,#-1;" + cfa(8, 0) + "stp x29,x30,[sp,#-16]!;" + cfa(8, 16)
        + ".cfi_escape 0x10,29,2,0x8f,0;.cfi_escape 0x10,30,2,0x8f,8;str z0,[sp,#1,mul vl];bl elsewhere;"
        "ldp x29,x30,[sp],#16;.cfi_restore 29;.cfi_restore 30;" + cfa(8, 0) + "addvl sp,sp,#1;.cfi_def_cfa sp,0;ret"
    ),
}  # fmt: skip
UNCERTAIN = {
    "a vector too many": frame("str z0,[sp,#2,mul vl]"),
    "a predicate too many": frame("str p0,[sp,#16,mul vl]"),
    "elements too many": frame("st1d {z0.d},p0,[sp,#2,mul vl]"),
    "a vector of two too many": frame("st2d {z0.d,z1.d},p0,[sp,#2,mul vl]"),
    "outside at the shortest length only": frame("str x0,[sp,#32]"),
    "outside at the longest length only": frame("str x0,[sp,#520]"),
    "a vector that reaches beyond at long lengths": frame("add x9,sp,#16;str z0,[x9,#1,mul vl]"),
    "by a register, beyond": frame("addvl x9,sp,#3;str z0,[x9,#-1,mul vl]"),
    "below, in two ways": frame("addvl x9,sp,#2;str xzr,[x9]"),
}
"""What may overwrite, at some length, the saved registers."""
WRONG = {
    "no row": of_frame("addvl sp,sp,#-2", "", "nop", "addvl sp,sp,#2"),
    "too few": of_frame("addvl sp,sp,#-2", cfa(8, 16), "nop", "addvl sp,sp,#2"),
    "in another direction": of_frame("addvl sp,sp,#2", cfa(16, 16), "nop", "addvl sp,sp,#-2"),
    "granules for vectors": of_frame("addpl sp,sp,#-2", cfa(16, 16), "nop", "addpl sp,sp,#2"),
    "other bytes": of_frame("addvl sp,sp,#-2", cfa(16, 32), "nop", "addvl sp,sp,#2"),
    "as at the shortest length": of_frame("addvl sp,sp,#-2", ".cfi_def_cfa_offset 48;", "nop", "addvl sp,sp,#2"),
    "another register's": of_frame("addvl sp,sp,#-2", cfa(16, 16, "0x8d"), "mov x29,#0", "addvl sp,sp,#2"),
    "released too late": frame("addvl sp,sp,#2;nop;addvl sp,sp,#-2"),
}


@pytest.mark.parametrize("body", PROVED.values(), ids=PROVED)
def test_right_rows_are_proved(body: str, tmp_path: Path) -> None:
    found = judged(body, tmp_path)
    assert not found.findings
    assert found.counts[DWARF].proved == found.instructions > 4


@pytest.mark.parametrize("body", UNCERTAIN.values(), ids=UNCERTAIN)
def test_what_may_be_overwritten_is_not_proved(body: str, tmp_path: Path) -> None:
    counts = judged(body, tmp_path).counts[DWARF]
    assert counts.unknown + counts.wrong > 0


@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG)
def test_wrong_rows_are_found(body: str, tmp_path: Path) -> None:
    found = judged(body, tmp_path)
    assert "cfa" in {finding.what for finding in found.findings}


def test_a_finding_has_the_vector_length(tmp_path: Path) -> None:
    (finding,) = judged(WRONG["too few"], tmp_path).findings
    assert finding.rule == "sp + 16 + 8 * vg"
    assert finding.code == "CFA = sp + 16 + 16 * vg since `addvl sp, sp, #-2` at .text+0x4"


def test_nothing_is_known_after_a_change_of_the_length(tmp_path: Path) -> None:
    for change in (".inst 0xd503477f", ".inst 0xd503427f", ".inst 0xd51b4240"):  # smstart, smstop sm, msr svcr,x0
        assert judged(frame(change), tmp_path).counts[DWARF].unknown > 0


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Assembly of GCC, with `.cfi_restore` after the load: GCC 14 writes them before it if the load is moved down."""
    path = tmp_path_factory.mktemp("vectors") / "vectors.s"
    command: Sequence[str] = (ABIS["aarch64"].compiler, *FLAGS, str(SOURCE), "-o", str(path))
    try:
        subprocess.run(command, check=True, timeout=HANG)
    except FileNotFoundError as error:
        absent(str(error))
    text: str = EARLY.sub(r"\2\1", path.read_text())
    return text


@pytest.fixture(scope="module")
def compiled(written: str) -> str:
    """The same, with the CFA's register where it is no expression any more: GCC writes the offset alone."""
    corrected: str = re.sub(r"\.cfi_def_cfa_offset (\d+)", r".cfi_def_cfa sp, \1", written)
    return corrected


def test_what_a_compiler_makes_is_proved(compiled: str, tmp_path: Path) -> None:
    assert len(re.findall(r"str\tz(8|9|1\d|2[0-3]),", compiled)) >= 16
    found = report_on("aarch64", compiled, tmp_path)
    assert not found.findings
    assert found.counts[DWARF].proved == found.instructions > 100


def test_what_has_no_meaning_is_unknown(written: str, tmp_path: Path) -> None:
    found = report_on("aarch64", written, tmp_path)
    assert not found.findings
    counts = found.counts[DWARF]
    assert 0 < counts.unknown < 20
    assert counts.proved == found.instructions - counts.unknown


def test_registers_that_are_restored_before_the_load_are_found(compiled: str, tmp_path: Path) -> None:
    early, count = LATE.subn(r"\2\1", compiled)
    assert count
    findings = report_on("aarch64", early, tmp_path).findings
    assert [finding.what for finding in findings] == ["fp", "ra"] * count


def test_each_error_in_what_a_compiler_makes_is_found(compiled: str, tmp_path: Path) -> None:
    places = [found.start() for found in re.finditer(r"0x92,0x2e,0,0x4[08],0x1e", compiled)]
    of_cfa = [at for at in places if compiled.rfind("cfi_escape", 0, at) == compiled.rfind("cfi_escape 0xf,", 0, at)]
    assert len(of_cfa) > 3
    for at in of_cfa:
        changed = compiled[:at] + "0x92,0x2e,0,0x44" + compiled[at + len("0x92,0x2e,0,0x40") :]
        findings = report_on("aarch64", changed, tmp_path).findings
        assert {finding.what for finding in findings} == {"cfa"}
        assert all("* vg" in finding.code for finding in findings)
