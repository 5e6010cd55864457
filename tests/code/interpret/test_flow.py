"""The control flow of functions is followed, and few rows stay unknown; rows are right unless a test names an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from sframe_unwind.code.judge.findings import DWARF, Counts
from sframe_unwind.verify.code_report import CodeReport
from tests.code.assembled import report_on

FUNCTION = r"""
    /* AMD64: as GCC and Clang jump by a table of distances. */
    .macro jump_by table, index
    lea \table(%rip),%rcx
    .ifnb \index
    mov \index,%eax
    .endif
    movslq (%rcx,%rax,4),%rax
    add %rcx,%rax
    jmp *%rax
    .endm
    .text
    .globl f
    .type f, %function
f:  .cfi_startproc
{body}
    .cfi_endproc
    .size f, .-f
{data}
"""

CASES_THAT_CANNOT_BE = (
    "amd64",
    """
    jump_by table, %edi
one:
    push %rbx
    .cfi_adjust_cfa_offset 8
    pop %rbx
    .cfi_adjust_cfa_offset -8
    ret
two:
    xor %eax,%eax
    ret
end:
    """,
    """
    .section .rodata
    .align 4
table: .long one-table, end-table, two-table
    """,
)
"""Clang makes impossible cases lead to after the function."""

COMPARED_FOR_SOMETHING_ELSE = (
    "amd64",
    """
    cmp $1,%esi
    ja two
    jump_by table, %edi
one:
    ret
two:
    mov $2,%eax
    ret
three:
    mov $3,%eax
    ret
    """,
    """
    .section .rodata
    .align 4
table: .long one-table, two-table, three-table
    """,
)
"""The last comparison bounds no index: the table has more entries."""

MORE_THAN_THE_TABLE = (
    "amd64",
    """
    push %rbx
    .cfi_adjust_cfa_offset 8
    cmp $2,%esi
    ja out
    jump_by table, %edi
one:
    inc %eax
out:
    pop %rbx
    .cfi_adjust_cfa_offset -8
    ret
    """,
    """
    .type g, %function
g:  .cfi_startproc
    inc %eax
inside:
    ret
    .cfi_endproc
    .size g, .-g
    .section .rodata
    .align 4
table: .long one-table, out-table, inside-table
    """,
)
"""The last comparison allows values after the table: this must not make another function look wrong."""

TABLES_SIDE_BY_SIDE = (
    "amd64",
    """
    push %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_offset 6,-16
    push %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_offset 3,-24
    mov %edi,%ebx
    test %ebx,%ebx
    nopl (%rax)
one:
    mov %ebx,%eax
    and $7,%eax
    jump_by first
two:
    mov %ebx,%eax
    shr $3,%eax
    and $7,%eax
    jump_by second
three:
    pop %rbx
    .cfi_adjust_cfa_offset -8
    pop %rbp
    .cfi_adjust_cfa_offset -8
    .cfi_restore 6
    jmp g
    """,
    """
    .type g, %function
g:  .cfi_startproc
    inc %eax
    ret
    .cfi_endproc
    .size g, .-g
    .section .rodata
    .align 4
first: .long two-first, two-first
second: .long one-second, three-second
    """,
)
"""Clang masks the indexes, and the tables end before values that cannot occur.  If the second table is read as a part
of the first, it has a target in the prologue."""

PART_WITHOUT_A_FRAME = (
    "amd64",
    """
    cmp $2,%edi
    ja g
    jump_by table, %edi
one:
    inc %eax
    ret
two:
    dec %eax
    ret
    """,
    """
    .section .text.unlikely,"ax",%progbits
    nop
    .type g, %function
g:  .cfi_startproc
    ud2
    .cfi_endproc
    .size g, .-g
    .section .rodata
    .align 4
table: .long one-table, g-table, two-table
    """,
)
"""GCC makes impossible cases lead to a part that is elsewhere, and has the rows of a function."""

MANY_ENTRIES = (
    "amd64",
    """
    lea table(%rip),%rcx
    movslq (%rcx,%rdi,4),%rax
    add %rcx,%rax
    jmp *%rax
one:
    inc %eax
    ret
two:
    xor %eax,%eax
    ret
    """,
    """
    .section .rodata
    .align 4
table: .rept 30000
    .long one-table
    .endr
    .long two-table
    """,
)
"""Clang uses an argument as the index, and the table has as many entries as there are cases."""

INTO_A_PART = (
    "amd64",
    """
    test %edi,%edi
    je one
    cmp $1,%edi
    je two
    ret
    """,
    """
    .section .text.unlikely,"ax",%progbits
    .type f.cold, %function
f.cold: .cfi_startproc
one:
    xor %eax,%eax
    ret
two:
    xor %edx,%edx
    ret
    .cfi_endproc
    .size f.cold, .-f.cold
    """,
)
"""GCC puts unlikely code into one part, and jumps to several places in it."""

JUMP_BY_TABLE = """
    cmp w0,#1
    b.hi two
    adrp x1,table
    add x1,x1,:lo12:table
    ldr w0,[x1,w0,uxtw #2]
    adr x1,one
    add x0,x1,w0,sxtw #2
    br x0
one:
    sub sp,sp,#16
    .cfi_adjust_cfa_offset 16
    add sp,sp,#16
    .cfi_adjust_cfa_offset -16
    ret
two:
    mov w0,#2
    ret
    """
TABLE_OF_DISTANCES = """
    .section .rodata
    .align 2
table: .word (one-one)/4, (two-one)/4
    """
"""GCC's code for AArch64.  In big-endian programs, the table has the other byte order, and the instructions do not."""

JUMP_THROUGH_THE_RETURN_REGISTER = (
    "s390x",
    """
    stmg %r14,%r15,112(%r15)
    .cfi_offset 14,-48
    .cfi_offset 15,-40
    llgfr %r1,%r2
    sllg %r1,%r1,2
    larl %r14,table
    agf %r14,0(%r1,%r14)
    br %r14
one:
    lhi %r2,1
    j out
two:
    lhi %r2,2
out:
    lmg %r14,%r15,112(%r15)
    .cfi_restore 14
    .cfi_restore 15
    br %r14
    """,
    """
    .section .rodata
    .align 4
table: .long one-table, two-table
    """,
)
"""On s390x, any register may hold the target of a jump by a table, even the return address register."""

ARGUMENTS_AT_A_LANDING_PAD = (
    "amd64",
    """
    .cfi_lsda 0x1b, calls
    sub $24,%rsp
    .cfi_adjust_cfa_offset 24
    push $1
    .cfi_adjust_cfa_offset 8
    push $2
    .cfi_adjust_cfa_offset 8
    .cfi_escape 0x2e,0x10
first:
    call many
after:
    add $16,%rsp
    .cfi_adjust_cfa_offset -16
    .cfi_escape 0x2e,0x00
    add $24,%rsp
    .cfi_adjust_cfa_offset -24
    ret
pad:
    .cfi_def_cfa_offset 32
    mov %rax,%rdi
    call _Unwind_Resume
    """,
    """
    .section .gcc_except_table,"a"
calls: .byte 0xff, 0xff, 1
    .uleb128 last-rows
rows: .uleb128 first-f, after-first, pad-f, 0
last:
    """,
)
"""The unwinder removes the arguments from the stack; ``DW_CFA_GNU_args_size`` has their size."""

DEFAULT_THAT_CANNOT_BE = (
    "amd64",
    """
    push %rbx
    .cfi_adjust_cfa_offset 8
    cmp $3,%edi
    ja end
    mov %edi,%eax
    pop %rbx
    .cfi_adjust_cfa_offset -8
    ret
end:
    """,
    """
    .type g, %function
g:  .cfi_startproc
    inc %eax
    ret
    .cfi_endproc
    .size g, .-g
    """,
)
"""Clang makes a branch that is never taken lead to after the function, where another one begins."""

STACK_PROBES = (
    "amd64",
    """
    push %rbx
    .cfi_adjust_cfa_offset 8
    mov %rsp,%r11
    sub $0x3000,%r11
    .cfi_def_cfa 11,0x3010
probe:
    sub $0x1000,%rsp
    movq $0,(%rsp)
    cmp %r11,%rsp
    jne probe
    .cfi_def_cfa_register 7
    sub $0x48,%rsp
    .cfi_def_cfa_offset 0x3058
    mov %rdi,0x1000(%rsp)
    lea 0x4c(%rsp),%rax
    add $0x3048,%rsp
    .cfi_def_cfa_offset 16
    pop %rbx
    .cfi_def_cfa_offset 8
    ret
    """,
    "",
)
"""Clang's code: after the loop, the stack pointer is equal to the value that it was compared with."""

STACK_POINTERS_THAT_MEET = (
    "amd64",
    """
    push %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_offset 6,-16
    push %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_offset 3,-24
    lea 24(%rsp),%rbx
    .cfi_def_cfa 3,0
    mov (%rsp),%r12
    test %edi,%edi
    je one
    sub $16,%rsp
one:
    mov %esi,%ebp
    test %edi,%edi
    je two
    add $16,%rsp
two:
    pop %rax
    pop %rbp
    .cfi_restore 6
    lea -8(%rbx),%rsp
    .cfi_def_cfa 7,8
    mov %r12,%rbx
    jmp g
    """,
    """
    .type g, %function
g:  .cfi_startproc
    ret
    .cfi_endproc
    .size g, .-g
    """,
)
"""If the stack pointer is unknown, a value loaded through it may be the caller's frame pointer."""

SAVED_WHERE_STACK_POINTERS_MEET = (
    "amd64",
    """
    push %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_offset 3,-16
    lea 16(%rsp),%rbx
    .cfi_def_cfa 3,0
    test %edi,%edi
    je one
    sub $8,%rsp
one:
    test %edi,%edi
    je two
    add $8,%rsp
two:
    push %rbp
    .cfi_offset 6,-24
    mov %esi,%ebp
    pop %rbp
    .cfi_restore 6
    lea -16(%rbx),%rsp
    pop %rbx
    .cfi_restore 3
    .cfi_def_cfa 7,8
    ret
    """,
    "",
)
"""If the stack pointer is unknown, so is the slot in which a register was saved."""


PART_AFTER_A_NOP = (
    "amd64",
    """
    push %rbx
    .cfi_adjust_cfa_offset 8
    test %edi,%edi
    jne inside
    pop %rbx
    .cfi_adjust_cfa_offset -8
    ret
    """,
    """
    .type part, %function
part: .cfi_startproc
    nop
inside:
    .cfi_def_cfa_offset 16
    pop %rbx
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
    .size part, .-part
    """,
)
"""GCC puts an instruction with the row of an entry before a part that is elsewhere."""

ENTERED_BY_A_PLT = (
    "amd64",
    """
    .cfi_adjust_cfa_offset 16
    push %rbx
    .cfi_adjust_cfa_offset 8
    mov %rsp,%rbx
    .cfi_def_cfa_register %rbx
    and $-64,%rsp
    mov 16(%rbx),%rsi
    mov 8(%rbx),%rdi
    call g
    mov %rax,%r11
    mov %rbx,%rsp
    .cfi_def_cfa_register %rsp
    mov (%rsp),%rbx
    add $24,%rsp
    .cfi_adjust_cfa_offset -24
    jmp *%r11
    """,
    "",
)
"""The dynamic linker's code, which removes what the header of the procedure linkage table has pushed."""

FRAME_OF_ITS_CALLER = (
    "amd64",
    """
    mov (%rsp),%r10
    lea (%rdi,%rsi),%rax
    mov %rbp,16(%rax)
    mov %r10,24(%rax)
    mov %rax,%rbp
    .cfi_def_cfa %rbp,32
    .cfi_rel_offset %rbp,16
    mov %rdi,%rsp
    call *%rcx
    lea 24(%rbp),%rsp
    mov 16(%rbp),%rbp
    .cfi_def_cfa %rsp,8
    .cfi_restore %rbp
    ret
    """,
    "",
)
"""libffi's code, which puts its frame where its caller has made room for it."""

STACK_OF_ANOTHER = (
    "amd64",
    """
    mov 48(%rdi),%r8
    mov 8(%rdi),%r9
    mov 56(%rdi),%rdx
    .cfi_def_cfa %rdi,0
    .cfi_register %rsp,%r8
    .cfi_register %rbp,%r9
    .cfi_register %rip,%rdx
    mov (%rdi),%rbx
    mov %esi,%eax
    mov %r8,%rsp
    mov %r9,%rbp
    jmp *%rdx
    """,
    "",
)
"""longjmp's code, with the rows of the frame to which it jumps."""

WRONG_CFA = (
    "amd64",
    """
    push %rbp
    .cfi_adjust_cfa_offset 24
    .cfi_offset %rbp,-32
    nop
    pop %rbp
    .cfi_adjust_cfa_offset -24
    .cfi_restore %rbp
    ret
    """,
    "",
)
"""The CFA is 16 bytes too high, and the slot of the frame pointer is counted from it."""

EMULATED_BY_XEN = (
    "amd64",
    """
    push %rbx
    .cfi_adjust_cfa_offset 8
    ud2
begun:
    .ascii "xen"
    cpuid
    pop %rbx
    .cfi_adjust_cfa_offset -8
    ret
    .skip 0x67 - (. - begun), 0x90
    ret
    """,
    "",
)
"""Xen executes the bytes after the five from `ud2` on.  As instructions, these jump to the last line."""

ANOTHER_STACK = (
    "amd64",
    """
    push %rbx
    .cfi_adjust_cfa_offset 8
    mov %gs:8,%r11
    mov %rsp,(%r11)
    mov %r11,%rsp
    .cfi_escape 0x0f,5,0x77,0,0x06,0x23,16
    call g
    ud2
    """,
    "",
)
"""The CFA is the word at the stack pointer plus 16, on another stack."""

PART_OF_WHAT_IS_NOT_FOLLOWED = (
    "amd64",
    """
    push %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp,-16
    mov %rsp,%rbp
    .cfi_def_cfa_register %rbp
    rmpadjust
    test %eax,%eax
    jne part
back:
    pop %rbp
    .cfi_def_cfa %rsp,8
    ret
    """,
    """
    .section .text.unlikely,"ax"
part:
    .cfi_startproc
    .cfi_def_cfa %rbp,16
    .cfi_offset %rbp,-16
    call g
    jmp back
    .cfi_endproc
    """,
)
"""The length of `rmpadjust` is unknown."""

CASES = {
    "clang's cases that cannot be": CASES_THAT_CANNOT_BE,
    "another comparison": COMPARED_FOR_SOMETHING_ELSE,
    "more than the table": MORE_THAN_THE_TABLE,
    "tables side by side": TABLES_SIDE_BY_SIDE,
    "a default that cannot be": DEFAULT_THAT_CANNOT_BE,
    "stack probes": STACK_PROBES,
    "a part without a frame": PART_WITHOUT_A_FRAME,
    "into a part": INTO_A_PART,
    "many entries": MANY_ENTRIES,
    "br %r14": JUMP_THROUGH_THE_RETURN_REGISTER,
    "entered by a PLT": ENTERED_BY_A_PLT,
    "part after a nop": PART_AFTER_A_NOP,
    "arguments at a landing pad": ARGUMENTS_AT_A_LANDING_PAD,
    "little-endian table": ("aarch64", JUMP_BY_TABLE, TABLE_OF_DISTANCES),
    "big-endian table": ("aarch64_be", JUMP_BY_TABLE, TABLE_OF_DISTANCES),
}
NOT_FOLLOWED = {
    "frame of its caller": FRAME_OF_ITS_CALLER,
    "stack of another": STACK_OF_ANOTHER,
    "loaded": STACK_POINTERS_THAT_MEET,
    "saved": SAVED_WHERE_STACK_POINTERS_MEET,
    "after a trap": EMULATED_BY_XEN,
    "another stack": ANOTHER_STACK,
    "a part of it": PART_OF_WHAT_IS_NOT_FOLLOWED,
}


def judged(case: tuple[str, str, str], folder: Path) -> CodeReport:
    """Return the code's judgement of a case."""
    machine, body, data = case
    return report_on(machine, FUNCTION.format(body=body, data=data), folder)


def counts(case: tuple[str, str, str], folder: Path) -> tuple[int, Counts]:
    """Return the number of instructions of a case, and the findings about its DWARF CFI."""
    found = judged(case, folder)
    return found.instructions, found.counts[DWARF]


@pytest.mark.parametrize("case", CASES)
def test_all_is_proved(case: str, tmp_path: Path) -> None:
    instructions, found = counts(CASES[case], tmp_path)
    assert found == Counts(proved=instructions, wrong=0, unknown=0)


@pytest.mark.parametrize("case", NOT_FOLLOWED)
def test_what_cannot_be_followed_is_not_wrong(case: str, tmp_path: Path) -> None:
    _, found = counts(NOT_FOLLOWED[case], tmp_path)
    assert found.unknown
    assert not found.wrong


@pytest.mark.parametrize("row", [".cfi_adjust_cfa_offset 16", ".cfi_adjust_cfa_offset -24"])
def test_row_that_is_missing_where_a_plt_enters(row: str, tmp_path: Path) -> None:
    machine, body, data = ENTERED_BY_A_PLT
    assert row in body
    _, found = counts((machine, body.replace(row, ""), data), tmp_path)
    assert found.wrong


def test_a_wrong_cfa_is_one_error(tmp_path: Path) -> None:
    found = judged(WRONG_CFA, tmp_path)
    assert found.counts[DWARF].wrong == 2
    assert {finding.what for finding in found.findings} == {"cfa"}
