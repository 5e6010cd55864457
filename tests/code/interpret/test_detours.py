"""Code that no table describes, and that leads back to the function that jumps to it, has that function's frame."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from sframe_unwind.code.judge.findings import DWARF, SFRAME, Counts
from tests.code.assembled import report_on

FUNCTION = """
    .text
    .globl f
    .type f,%function
f:  .cfi_startproc
    {function}
    .cfi_endproc
    .size f,.-f
    {other}
    .section .altinstr_aux,"ax"
    {padding}
aux:
    {aux}
"""
DETOURS = {
    "amd64": {
        "function": """
    push %rbx
    .cfi_adjust_cfa_offset 8
    xor %ebx,%ebx
    jmp aux
yes:
    .cfi_adjust_cfa_offset {error}
    inc %ebx
    .cfi_adjust_cfa_offset -{error}
no: mov %ebx,%eax
    pop %rbx
    .cfi_adjust_cfa_offset -8
    ret
    """,
        "padding": "jmp yes; jmp no; push %rax; ret",
        "aux": "testb $1,(%rdi); jne yes; jmp no",
    },
    "aarch64": {
        "function": """
    stp x29,x30,[sp,#-32]!
    .cfi_def_cfa_offset 32
    .cfi_offset 29,-32
    .cfi_offset 30,-24
    b aux
yes:
    .cfi_adjust_cfa_offset {error}
    add x0,x0,#1
    .cfi_adjust_cfa_offset -{error}
no: ldp x29,x30,[sp],#32
    .cfi_def_cfa_offset 0
    .cfi_restore 29
    .cfi_restore 30
    ret
    """,
        "padding": "b yes; b no; ret",
        "aux": "tbnz w1,#3,1f; b no; 1: b yes",
    },
    "s390x": {
        "function": """
    stmg %r14,%r15,112(%r15)
    .cfi_offset 14,-48
    .cfi_offset 15,-40
    lay %r15,-160(%r15)
    .cfi_adjust_cfa_offset 160
    jg aux
yes:
    .cfi_adjust_cfa_offset {error}
    aghi %r2,1
    .cfi_adjust_cfa_offset -{error}
no: lmg %r14,%r15,272(%r15)
    .cfi_adjust_cfa_offset -160
    br %r14
    """,
        "padding": "j yes; j no; br %r14",
        "aux": "tm 0(%r2),1; jgne yes; jg no",
    },
}
LEAF = {
    "function": "mov %edi,%eax; jmp aux; yes: inc %eax; no: ret",
    "padding": "nop",
    "aux": "testb $1,(%rdi); jne yes; jmp no",
}
INTO_A_PART = {
    "function": """
    push %rbx
    .cfi_adjust_cfa_offset 8
    jmp aux
no: pop %rbx
    .cfi_adjust_cfa_offset -8
    ret
    """,
    "other": """
    .section .text.unlikely,"ax"
f.cold: .cfi_startproc
    .cfi_def_cfa_offset 16
    inc %eax
yes: inc %eax
    jmp no
    .cfi_endproc
    .text
    """,
    "padding": "nop",
    "aux": "testb $1,(%rdi); jne f.cold; jmp no",
}
LEAVES = {
    "function": "jmp aux",
    "padding": "nop",
    "aux": "push %rbx; call g; pop %rbx; jmp g; g: ret",
}
"""A tail call."""


def checked(machine: str, parts: dict[str, str], folder: Path) -> tuple[list[str], Mapping[str, Counts]]:
    source = FUNCTION.format(**{"other": "", **parts})
    found = report_on(machine, source, folder)
    return [finding.what for finding in found.findings], found.counts


@pytest.mark.parametrize("machine", DETOURS)
def test_all_of_a_function_is_proved_that_a_detour_leads_back_to(machine: str, tmp_path: Path) -> None:
    parts = {name: text.format(error=0) for name, text in DETOURS[machine].items()}
    findings, counts = checked(machine, parts, tmp_path)
    assert not findings
    for table in (SFRAME, DWARF):
        assert counts[table].unknown == 0
        assert counts[table].proved > 4


@pytest.mark.parametrize("machine", DETOURS)
def test_a_row_is_wrong_that_a_detour_leads_back_to(machine: str, tmp_path: Path) -> None:
    parts = {name: text.format(error=16) for name, text in DETOURS[machine].items()}
    findings, counts = checked(machine, parts, tmp_path)
    assert findings == ["cfa", "cfa"]
    assert all(counts[table][:3] == (counts[table].proved, 1, 0) for table in (SFRAME, DWARF))


@pytest.mark.parametrize("parts", [LEAF, INTO_A_PART, LEAVES], ids=["leaf", "part", "tail call"])
def test_other_jumps_to_code_without_rows(parts: dict[str, str], tmp_path: Path) -> None:
    findings, counts = checked("amd64", parts, tmp_path)
    assert not findings
    assert counts[DWARF].unknown == 0
