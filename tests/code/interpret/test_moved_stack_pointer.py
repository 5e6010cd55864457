"""Stores through a stack pointer at a variable distance from the CFA may overwrite registers that the prologue saved.

Each wrong function destroys the slot of the frame pointer, but the interpretation cannot know that a store goes there;
each right function stores beside it.
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
WRONG = {
    "amd64": {
        "loaded": "mov (%rdi),%rsp;mov %rcx,(%rsp)",
        "of a narrow register": "mov %edi,%esp;mov %rcx,(%rsp)",
        "moved up": "sub $64,%rsp;lea (%rsp,%rdi),%rsp;mov %rcx,(%rsp)",
        "one of two": "sub $64,%rsp;test %edi,%edi;je 1f;add $64,%rsp;1: mov %rcx,(%rsp)",
        "pushed": "mov (%rdi),%rsp;push %rcx",
        "called": "mov (%rdi),%rsp;call g",
        "aligned and above": "and $-32,%rsp;sub $32,%rsp;add %rdi,%rsp;push %rcx",
        "moved up in a loop": "sub $64,%rsp;1: mov %rcx,(%rsp);add $16,%rsp;dec %rdi;jne 1b;push %rcx",
        "one of two addresses that the end of a loop shows": "lea -64(%rsp),%rdx;1: sub $8,%rsp;lea 56(%rsp),%rax;"
        "lea 64(%rsp),%r8;test %edi,%edi;cmovne %r8,%rax;cmp %rdx,%rsp;jne 1b;mov %rcx,(%rax)",
    },
    "aarch64": {
        "loaded": "ldr x9,[x0];mov sp,x9;str x1,[sp]",
        "moved up": "sub sp,sp,#64;add sp,sp,x0;str x1,[sp]",
        "one of two": "sub sp,sp,#64;cbz x0,1f;add sp,sp,#64;1: str x1,[sp]",
        "pushed": "ldr x9,[x0];mov sp,x9;str x1,[sp,#-16]!",
        "a pair": "ldr x9,[x0];mov sp,x9;stp x1,x2,[sp]",
        "a vector": "sub sp,sp,#64;add sp,sp,x0;str q0,[sp]",
    },
    "s390x": {
        "loaded": "lg %r15,0(%r2);stg %r3,0(%r15)",
        "moved up": "aghi %r15,-64;agr %r15,%r2;stg %r3,0(%r15)",
        "one of two": "aghi %r15,-64;ltgr %r2,%r2;je 1f;aghi %r15,64;1: stg %r3,88(%r15)",
        "several": "lg %r15,0(%r2);stmg %r3,%r9,0(%r15)",
        "characters": "lg %r15,0(%r2);mvc 0(8,%r15),0(%r3)",
        "rounded to the slot": "aghi %r15,-264;la %r1,367(%r15);nill %r1,65504;stg %r3,0(%r1)",
        "one bit cleared": "aghi %r15,-264;la %r1,384(%r15);nill %r1,65503;stg %r3,0(%r1)",
        "another half rounded": "aghi %r15,-264;la %r1,223(%r15);nilh %r1,65504;stg %r3,0(%r1)",
    },
}
RIGHT = {
    "amd64": {
        "allocated": "sub %rdi,%rsp;mov %rcx,(%rsp)",
        "aligned": "and $-64,%rsp;push %rcx;mov %rcx,-64(%rsp)",
        "one of two": "sub $64,%rsp;test %edi,%edi;je 1f;add $32,%rsp;1: mov %rcx,(%rsp)",
        "one of two addresses that the end of a loop shows": "lea -64(%rsp),%rdx;1: sub $8,%rsp;lea 48(%rsp),%rax;"
        "lea 56(%rsp),%r8;test %edi,%edi;cmovne %r8,%rax;cmp %rdx,%rsp;jne 1b;mov %rcx,(%rax)",
        "allocated many times": ".rept 24;sub %rdi,%rsp;.endr;mov %rcx,(%rsp);call g",
        "rounded by shifts": "sub %rdi,%rsp;lea 7(%rsp),%rax;shr $3,%rax;mov %rcx,(,%rax,8)",
        "in a loop": "1: sub %rdi,%rsp;mov %rcx,(%rsp);dec %rsi;jne 1b;push %rcx",
        "restored": "mov %rsp,%rbx;sub %rdi,%rsp;push %rcx;call g;mov %rbx,%rsp;push %rcx",
        "allocated by a distance": "sub $64,%rsp;mov %rdi,%rax;sub %rsp,%rax;sub %rax,%rsp;mov %rcx,(%rsp);call g",
        "in a loop, and less before it": "sub $64,%rsp;test %edi,%edi;jne 5f;sub $64,%rsp;1: mov %rcx,(%rsp);"
        "3: mov %rcx,(%rsp);test %esi,%esi;je 4f;sub $64,%rsp;jmp 3b;5: mov %rcx,(%rsp);jmp 1b;4: call g",
        "a pointer that x87 has loaded": "sub $64,%rsp;fldt (%rdi);fstpt (%rsp);mov (%rsp),%rax;movb $1,(%rax)",
        "a distance that is scaled": "sub $64,%rsp;mov %rdi,%rax;lea 16(%rsp),%rdx;sub %rdx,%rax;neg %rax;"
        "lea 48(%rsp),%rdx;lea (%rdx,%rax,4),%rdx;movl $1,(%rdx)",
        "probed": "lea -65536(%rsp),%r11;1: sub $4096,%rsp;movq $0,(%rsp);cmp %r11,%rsp;jne 1b;push %rcx",
    },
    "aarch64": {
        "allocated": "sub sp,sp,x0;str x1,[sp]",
        "aligned": "sub x9,sp,#64;and sp,x9,#-64;stp x1,x2,[sp]",
        "one of two": "sub sp,sp,#64;cbz x0,1f;add sp,sp,#32;1: str x1,[sp]",
        "in a loop": "1: sub sp,sp,x0;str x1,[sp];subs x2,x2,#1;b.ne 1b;str x1,[sp,#-16]!",
        "allocated by a distance": "sub sp,sp,#64;mov x9,sp;sub x9,x0,x9;sub sp,sp,x9;str x1,[sp]",
        "probed": "sub x9,sp,#65536;1: sub sp,sp,#4096;str xzr,[sp];cmp sp,x9;b.ne 1b;str x1,[sp]",
    },
    "s390x": {
        "allocated": "sgr %r15,%r2;stg %r3,160(%r15)",
        "one of two": "aghi %r15,-264;ltgr %r2,%r2;je 1f;aghi %r15,88;1: stg %r3,0(%r15)",
        "rounded": "aghi %r15,-264;la %r1,223(%r15);nill %r1,65504;stg %r3,0(%r1);stc %r3,0(%r4,%r1)",
        "in a loop": "1: sgr %r15,%r2;stg %r3,0(%r15);brctg %r4,1b;stg %r3,0(%r15)",
    },
}


def _source(machine: str) -> str:
    lines = [".text"]
    for kind, bodies in (("wrong", WRONG), ("right", RIGHT)):
        for number, body in enumerate(bodies[machine].values()):
            name = f"{kind}_{number}"
            lines += [f".globl {name}", f".type {name},%function", ".p2align 2", f"{name}: .cfi_startproc"]
            end = {"amd64": "2: nop;jmp 2b", "aarch64": "2: nop;b 2b", "s390x": "2: nop;j 2b"}[machine]
            lines += f"{PROLOGUES[machine]};{body};{end}".split(";")
            lines += [".cfi_endproc", f".size {name},.-{name}"]
    return "\n".join([*lines, ""])


@pytest.mark.parametrize("machine", ["amd64", "aarch64", "s390x"])
def test_stores_through_a_moved_stack_pointer(machine: str, tmp_path: Path) -> None:
    path = assemble(machine, _source(machine), tmp_path / "f.o")
    with elf.opened(path) as binary:
        verdict = check_elf(binary, None)
        worst = {
            (binary.symbols.name(one.start) or "").partition("+")[0]: one.worst[DWARF] for one in verdict.functions
        }
    for number, title in enumerate(WRONG[machine]):
        assert worst[f"wrong_{number}"] is not Judgement.PROVED, f"proved: {title}"
    for number, title in enumerate(RIGHT[machine]):
        assert worst[f"right_{number}"] is Judgement.PROVED, f"not proved: {title}"
