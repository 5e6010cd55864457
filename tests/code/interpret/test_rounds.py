"""Loops that move the stack pointer a constant number of times are followed round by round; others stay unknown.

Each function allocates in a loop, and has a row for the distance of the CFA from the stack pointer after the loop.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sframe_unwind import elf
from sframe_unwind.code.judge.findings import DWARF
from sframe_unwind.code.judge.judgement import Judgement
from sframe_unwind.verify.code_check import check_elf
from tests.code.assembled import assemble

PROLOGUES = {
    "amd64": "push %rbp;.cfi_def_cfa_offset 16;.cfi_offset %rbp,-16;mov %rsp,%rbp;.cfi_def_cfa_register %rbp",
    "aarch64": "stp x29,x30,[sp,#-16]!;.cfi_def_cfa_offset 16;.cfi_offset x29,-16;.cfi_offset x30,-8;mov x29,sp;"
    ".cfi_def_cfa_register x29",
    "s390x": "stg %r11,88(%r15);.cfi_offset %r11,-72;lgr %r11,%r15;.cfi_def_cfa_register %r11",
}
BASES = {"amd64": (7, 16), "aarch64": (31, 16), "s390x": (15, 160)}
"""The stack pointer's number, and its distance from the CFA after the prologue."""
ENDS = {"amd64": "nop;jmp .", "aarch64": "nop;b .", "s390x": "nopr %r0;j ."}
LOOPS = {
    "amd64": {
        "counted down": "mov $3,%ecx;1: sub $16,%rsp;sub $1,%rcx;jne 1b",
        "by a table": "lea c(%rip),%rcx;1: sub $16,%rsp;add $1,%rcx;cmpb $0,-1(%rcx);jne 1b",
        "of 32 bits": "mov $3,%ecx;1: sub $16,%rsp;sub $1,%rcx;cmp $0,%ecx;jne 1b",
        "in a loop": "4: lea -16(%rbp),%rsp;mov $2,%ecx;1: sub $16,%rsp;sub $1,%rcx;jne 1b;dec %rdi;jne 4b",
    },
    "aarch64": {
        "counted down": "mov x9,#3;1: sub sp,sp,#16;subs x9,x9,#1;b.ne 1b",
        "compared": "mov x9,#0;1: sub sp,sp,#16;add x9,x9,#1;cmp w9,#3;b.ne 1b",
    },
    "s390x": {"counted down": "lghi %r1,3;1: aghi %r15,-16;aghi %r1,-1;cghi %r1,0;jne 1b"},
}
"""Loops that all allocate 48 bytes."""
UNCERTAIN = {
    "amd64": {
        "counted by an argument": "1: sub $16,%rsp;sub $1,%rdi;jne 1b",
        "by what can be written": "lea d(%rip),%rcx;1: sub $16,%rsp;add $1,%rcx;cmpb $0,-1(%rcx);jne 1b",
        "counted in two ways": "mov $3,%ecx;test %edi,%edi;je 1f;mov $4,%ecx;1: sub $16,%rsp;sub $1,%rcx;jne 1b",
        "by another condition": "mov $3,%ecx;1: sub $16,%rsp;sub $1,%rcx;kortestw %k1,%k1;jne 1b",
        "by the lowest bits": "mov $0x103,%ecx;1: sub $16,%rsp;sub $1,%rcx;cmp $0,%cl;jne 1b;cmp $0x100,%rdi;jne 1b",
        "by an address in another file": "lea e(%rip),%rcx;1: sub $16,%rsp;add $8,%rcx;cmpb $0,-8(%rcx);jne 1b",
        "by where it is loaded": "lea f0(%rip),%rcx;1: sub $16,%rsp;cmp $0x5000,%rcx;je 1b",
        "changed by a local callee": "mov $3,%ebx;1: sub $16,%rsp;call h;sub $1,%rbx;jne 1b",
        "changed by a callee": "mov $3,%ecx;1: sub $16,%rsp;call g;sub $1,%rcx;jne 1b",
    },
    "aarch64": {
        "counted by an argument": "1: sub sp,sp,#16;subs x0,x0,#1;b.ne 1b",
        "by another condition": "mov x9,#3;1: sub sp,sp,#16;subs x9,x9,#1;fcmp d0,d1;b.ne 1b",
    },
    "s390x": {"counted by an argument": "1: aghi %r15,-16;aghi %r2,-1;cghi %r2,0;jne 1b"},
}

LOCAL = {
    "amd64": (".text", ".type h,%function", "h: .cfi_startproc", "mov %rdi,%rbx", "ret", ".cfi_endproc", ".size h,.-h")
}
"""A function that violates the ABI."""


def _function(machine: str, name: str, body: str, allocated: int) -> list[str]:
    base, offset = BASES[machine]
    row = f".cfi_def_cfa {base}, {offset + allocated}"
    lines = [f".globl {name}", f".type {name},%function", ".p2align 2", f"{name}: .cfi_startproc"]
    lines += f"{PROLOGUES[machine]};{body};{row};{ENDS[machine]}".split(";")
    return [*lines, ".cfi_endproc", f".size {name},.-{name}"]


def _worst(machine: str, functions: list[tuple[str, int]], folder: Path) -> list[Judgement]:
    """Return the verdicts on functions with one body each, whose rows have a given size of the allocation."""
    lines = [".text"]
    for number, (body, allocated) in enumerate(functions):
        lines += _function(machine, f"f{number}", body, allocated)
    lines += [".data", "d: .byte 1,1,0", ".section .rodata", "c: .byte 1,1,0", ".balign 8", "e: .quad g,g,0", ""]
    lines = [*LOCAL.get(machine, ()), *lines]
    with elf.opened(assemble(machine, "\n".join(lines), folder / "f.o")) as binary:
        verdict = check_elf(binary, None)
        worst = {binary.symbols.name(one.start): one.worst[DWARF] for one in verdict.functions}
    return [worst[f"f{number}"] for number in range(len(functions))]


@pytest.mark.parametrize("machine", ["amd64", "aarch64", "s390x"])
def test_what_is_allocated_is_counted(machine: str, tmp_path: Path) -> None:
    found = _worst(machine, [(body, 48) for body in LOOPS[machine].values()], tmp_path)
    assert dict(zip(LOOPS[machine], found)) == dict.fromkeys(LOOPS[machine], Judgement.PROVED)


@pytest.mark.parametrize("machine", ["amd64", "aarch64", "s390x"])
@pytest.mark.parametrize("allocated", [0, 32, 64, 160])
def test_another_number_of_rounds_is_not_proved(machine: str, allocated: int, tmp_path: Path) -> None:
    found = _worst(machine, [(body, allocated) for body in LOOPS[machine].values()], tmp_path)
    assert Judgement.PROVED not in found


@pytest.mark.parametrize("machine", ["amd64", "aarch64", "s390x"])
@pytest.mark.parametrize("allocated", [16, 32, 48, 64])
def test_an_uncertain_number_of_rounds_is_not_proved(machine: str, allocated: int, tmp_path: Path) -> None:
    found = _worst(machine, [(body, allocated) for body in UNCERTAIN[machine].values()], tmp_path)
    assert [title for title, worst in zip(UNCERTAIN[machine], found) if worst is Judgement.PROVED] == []
