"""A CFA that is a word in memory plus a constant, as in assembly that realigns the stack."""

from __future__ import annotations

from pathlib import Path

import pytest

from sframe_unwind import elf
from sframe_unwind.code.judge.findings import DWARF, Finding
from sframe_unwind.code.judge.judgement import Judgement
from sframe_unwind.verify.code_check import check_elf
from tests.code.assembled import assemble

FUNCTIONS = {
    "amd64": """
    mov %rsp,%rax
    .cfi_def_cfa_register %rax
    and $-64,%rsp
    sub $64,%rsp
    mov %rax,40(%rsp)
    .cfi_escape 0x0f,5,0x77,{slot},0x06,0x23,{added}
    xor %eax,%eax
    {moved}
    mov 40(%rsp),%rax
    .cfi_def_cfa %rax,8
    mov %rax,%rsp
    .cfi_def_cfa %rsp,8
    ret
""",
    "aarch64": """
    mov x9,sp
    .cfi_def_cfa x9,0
    sub x10,sp,#128
    and sp,x10,#-64
    str x9,[sp,#40]
    .cfi_escape 0x0f,5,0x8f,{slot},0x06,0x23,{added}
    mov x9,#0
    {moved}
    ldr x9,[sp,#40]
    .cfi_def_cfa x9,0
    mov sp,x9
    .cfi_def_cfa sp,0
    ret
""",
}
ADDED = {"amd64": 8, "aarch64": 0}
OVERWRITING = {"amd64": "mov %rcx,40(%rsp)", "aarch64": "str x3,[sp,#40]"}
WORD = 8
REALIGNED = """
    push %r13
    .cfi_def_cfa_offset 16
    .cfi_offset 13,-16
    lea 16(%rsp),%r13
    .cfi_def_cfa 13,0
    and $-64,%rsp
    push -8(%r13)
    push %rbp
    mov %rsp,%rbp
    .cfi_escape 0x10,6,2,0x76,0
    push %r13
    .cfi_escape 0x0f,3,0x76,0x78,6
    sub $0x508,%rsp
    xor %r13d,%r13d
    {moved}
    lea -8(%rbp),%rsp
    pop %r13
    .cfi_def_cfa 13,0
    pop %rbp
    .cfi_restore 6
    lea -16(%r13),%rsp
    .cfi_def_cfa 7,16
    pop %r13
    .cfi_def_cfa_offset 8
    ret
"""
"""The code of GCC for a function with vectors of 64 bytes: the CFA is loaded from a word of the frame."""
BESIDE = (
    "vmovq %xmm29,-0x4d8(%rbp)",
    "vmovq %xmm29,-0x40(%rbp)",
    "vmovss %xmm18,-0x80(%rbp,%rcx,4)",
    "vpextrd $1,%xmm29,-0x10(%rbp)",
    "vmovhps %xmm29,-0x10(%rbp)",
    "vaddsd -8(%rbp),%xmm1,%xmm17",
    "vfmadd231ps -8(%rbp),%zmm1,%zmm2",
    "vpaddd -8(%rbp,%rcx,8),%zmm1,%zmm2{%k1}",
)
"""AVX-512 that leaves that word unchanged."""
INTO = (
    "vmovq %xmm29,-8(%rbp)",
    "vmovsd %xmm29,-8(%rbp)",
    "vmovd %xmm29,-4(%rbp)",
    "vpextrb $1,%xmm29,-1(%rbp)",
    "vmovlpd %xmm29,-8(%rbp)",
    "vmovups %zmm1,-0x40(%rbp)",
    "vpmovqb %zmm1,-8(%rbp)",
)
"""AVX-512 that overwrites it."""


def _checked(machine: str, slot: int, added: int, moved: str, folder: Path) -> tuple[Judgement, list[Finding]]:
    return _judged(machine, FUNCTIONS[machine].format(slot=slot, added=added, moved=moved), folder)


def _judged(machine: str, body: str, folder: Path) -> tuple[Judgement, list[Finding]]:
    head = ".text\n.globl f\n.type f,%function\nf: .cfi_startproc"
    with elf.opened(assemble(machine, f"{head}{body}.cfi_endproc\n.size f,.-f\n", folder / "f.o")) as binary:
        verdict = check_elf(binary, None)
    return verdict.functions[0].worst[DWARF], list(verdict.findings)


@pytest.mark.parametrize("machine", list(FUNCTIONS))
def test_a_word_in_memory_plus_a_constant(machine: str, tmp_path: Path) -> None:
    right = ADDED[machine]
    assert _checked(machine, 40, right, "nop", tmp_path) == (Judgement.PROVED, [])
    assert _checked(machine, 32, right, "nop", tmp_path)[0] is Judgement.WRONG
    assert _checked(machine, 40, right, OVERWRITING[machine], tmp_path)[0] is not Judgement.PROVED
    worst, findings = _checked(machine, 40, right + WORD, "nop", tmp_path)
    assert worst is Judgement.WRONG
    assert findings[0].what == "cfa"
    assert findings[0].rule.endswith(f"+ 40, plus {right + WORD}")


@pytest.mark.parametrize("moved", BESIDE)
def test_what_vex_does_not_know_leaves_the_word_as_it_is(moved: str, tmp_path: Path) -> None:
    assert _judged("amd64", REALIGNED.format(moved=moved), tmp_path) == (Judgement.PROVED, [])


@pytest.mark.parametrize("moved", INTO)
def test_what_vex_does_not_know_overwrites_the_word(moved: str, tmp_path: Path) -> None:
    assert _judged("amd64", REALIGNED.format(moved=moved), tmp_path)[0] is not Judgement.PROVED
