"""A CFA that is a word in memory plus a constant, as assembly has it that realigns the stack."""

from __future__ import annotations

from pathlib import Path

import pytest

from sframe_unwind import elf
from sframe_unwind.code.findings import DWARF, Finding
from sframe_unwind.code.judgement import Judgement
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


def _checked(machine: str, slot: int, added: int, moved: str, folder: Path) -> tuple[Judgement, list[Finding]]:
    body = FUNCTIONS[machine].format(slot=slot, added=added, moved=moved)
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
