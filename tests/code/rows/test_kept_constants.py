"""The address of a jump table that code keeps in its frame is known until something may change the slot, on AMD64."""

from __future__ import annotations

from pathlib import Path

import pytest

from sframe_unwind.convert.from_code import functions_by_code, known_functions
from sframe_unwind.elf import opened
from tests.code.assembled import linked

FUNCTION = """
    .text
    .globl f
    .type f, %function
f:  sub $72, %rsp
    lea table(%rip), %rax
    mov %rax, 24(%rsp)
    {between}
    cmp $1, %edi
    ja 2f
    mov %edi, %edi
    mov 24(%rsp), %rcx
    movslq (%rcx,%rdi,4), %rax
    add %rcx, %rax
    jmp *%rax
1:  xor %eax, %eax
2:  add $72, %rsp
    ret
    .size f, .-f
    .section .rodata
    .align 4
table: .long 1b - table, 2b - table
other: .long 2b - other
    """
"""The instruction at 1 is reached by the table only."""

KEPT = [
    "mov %rsi,32(%rsp)",
    "mov %esi,20(%rsp)",
    "mov %rsi,(%rdx)",
    "mov %rsi,other(%rip)",
    "call g@PLT",
    "lea 32(%rsp),%rdi; call g@PLT",  # the object begins above
    "lea 32(%rsp),%rax; mov %rax,(%rdx); mov (%rdx),%rcx; mov %rsi,(%rcx)",
    "mov 24(%rsp),%rax; mov %rax,8(%rsp); mov %rsi,24(%rsp); mov 8(%rsp),%rax; mov %rax,24(%rsp)",
    "mov %rax,%rsi; test %edx,%edx; je 3f; mov %rsi,24(%rsp); 3:",
]
CHANGED = [
    "mov %rsi,24(%rsp)",
    "mov %esi,28(%rsp)",
    "movb $0,25(%rsp)",
    "movups %xmm0,16(%rsp)",
    "mov %rsi,(%rsp,%rdx,8)",
    "lea 48(%rsp),%rax; mov %rsi,(%rax,%rdx,8)",  # the index may be negative
    "lea 24(%rsp),%rdi; call g@PLT",
    "lea 8(%rsp),%rdi; call g@PLT",
    "lea 8(%rsp),%rax; mov %rax,(%rdx); call g@PLT",
    "lea 8(%rsp),%rax; mov %rax,(%rdx); mov (%rdx),%rcx; mov %rsi,(%rcx)",
    "lea 8(%rsp),%rax; mov %rax,40(%rsp); lea 40(%rsp),%rdi; call g@PLT",
    "lea 8(%rsp),%rdi; mov %rdx,%rcx; rep stosb",
    "lea 8(%rsp),%rsi; mov $228,%eax; syscall",
    "test %edx,%edx; je 3f; mov %rsi,24(%rsp); 3:",
    "lea other(%rip),%rax; test %edx,%edx; je 3f; mov %rax,24(%rsp); 3:",
    "add $40,%rsp; call g@PLT; sub $40,%rsp",
]


def has_all_rows(between: str, folder: Path) -> bool:
    """Return whether all code of the function has rows, with some instructions before it loads the address again."""
    with opened(linked(FUNCTION.format(between=between), folder)) as binary:
        start = next(symbol.address for symbol in binary.symbols if symbol.name == "f")
        found = {one.start: one for one in functions_by_code(binary, known_functions(binary))}[start]
    return None not in map(found.rule_at, found.instructions)


@pytest.mark.parametrize("between", KEPT)
def test_a_constant_is_kept(between: str, tmp_path: Path) -> None:
    assert has_all_rows(between, tmp_path)


@pytest.mark.parametrize("between", CHANGED)
def test_a_constant_that_may_be_changed_is_forgotten(between: str, tmp_path: Path) -> None:
    assert not has_all_rows(between, tmp_path)
