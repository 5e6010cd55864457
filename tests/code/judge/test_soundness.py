"""The meaning of "proved": verdicts do not depend on order, and counts include every instruction."""

from __future__ import annotations

from pathlib import Path

import pytest

from sframe_unwind.code.judge.findings import DWARF
from tests.code.assembled import report_on

LITERALS = """
    .macro function name, const
    .p2align 6
    .globl \\name
    .type \\name,%function
\\name:
    .cfi_startproc
    ldr x16, 9f
    sub sp, sp, x16
    .cfi_def_cfa_offset 0x11000
    str x0, [sp]
    add sp, sp, x16
    .cfi_def_cfa_offset 0
    ret
    .cfi_endproc
    .size \\name,.-\\name
    .p2align 3
9:  .quad \\const
    .endm
    .text
    function {first}
    function {second}
"""
RIGHT, WRONG = "right, 0x11000", "wrong, 0x22000"

FENTRY = """
    .text
    .globl f
    .type f,%function
f:  .cfi_startproc
    brasl %r0,__fentry__
    stmg %r14,%r15,112(%r15)
    .cfi_offset 14,-48
    .cfi_offset 15,-40
    lay %r15,-160(%r15)
    .cfi_def_cfa_offset 320
    bras %r5,1f
    .quad 12345
1:  brasl %r14,g
    lmg %r14,%r15,272(%r15)
    .cfi_restore 15
    .cfi_restore 14
    .cfi_def_cfa_offset 160
    br %r14
    .cfi_endproc
    .size f,.-f
"""

NOT_DECODED = """
    .text
    .globl f
    .type f,%function
f:  .cfi_startproc
    .cfi_escape 0x3f
    sub sp, sp, #16
    add sp, sp, #16
    ret
    .cfi_endproc
    .size f,.-f
"""


@pytest.mark.parametrize(("first", "second"), [(RIGHT, WRONG), (WRONG, RIGHT)])
def test_the_verdict_does_not_depend_on_the_order_of_functions(first: str, second: str, tmp_path: Path) -> None:
    """Both functions have the same bytes; the constants that they read after their ends differ."""
    found = report_on("aarch64", LITERALS.format(first=first, second=second), tmp_path)
    assert {finding.function.partition("+")[0] for finding in found.findings} == {"wrong"}


def test_a_link_register_of_its_own_destroys_no_return_address(tmp_path: Path) -> None:
    found = report_on("s390x", FENTRY, tmp_path)
    assert found.counts[DWARF].wrong == 0
    assert found.counts[DWARF].proved >= 7


def test_every_instruction_of_a_function_that_is_described_is_counted(tmp_path: Path) -> None:
    found = report_on("aarch64", NOT_DECODED, tmp_path)
    assert sum(found.counts[DWARF]) == found.instructions == 3
    assert found.counts[DWARF].unknown == 3


ALIGNED = """
    .text
    .globl f
    .type f,%function
f:  .cfi_startproc
    push %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_offset %rbp,-16
    mov %rsp,%rbp
    {register}
    sub $40,%rsp
    {offset}
    and ${mask},%rsp
    mov %rax,16(%rsp)
    call g
    leave
    .cfi_def_cfa %rsp,8
    .cfi_restore %rbp
    ret
    .cfi_endproc
    .size f,.-f
"""
BY_RBP = {"register": ".cfi_def_cfa_register %rbp", "offset": ""}
BY_RSP = {"register": "", "offset": ".cfi_adjust_cfa_offset 40"}


@pytest.mark.parametrize(
    ("rules", "mask", "unknown"), [(BY_RSP, -16, 3), (BY_RSP, -8, 0), (BY_RBP, -16, 0), (BY_RBP, -64, 0)]
)
def test_a_caller_may_not_have_aligned_its_stack(
    rules: dict[str, str], mask: int, unknown: int, tmp_path: Path
) -> None:
    """Functions of Go call others with a stack that is not aligned to 16 bytes."""
    found = report_on("amd64", ALIGNED.format(mask=mask, **rules), tmp_path)
    assert found.findings == ()
    assert found.counts[DWARF] == (8 - unknown, 0, unknown, 0)
