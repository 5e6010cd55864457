"""Functions in assembly without CFI: the forms that people write by hand."""

from __future__ import annotations


def function(name: str, body: str) -> str:
    """Return a function with its symbol.

    :param body: its instructions, one a line.
    """
    lines = "\n".join(f"\t{line.strip()}" if ":" not in line else line.strip() for line in body.strip().splitlines())
    return f"\t.globl {name}\n\t.type {name}, %function\n{name}:\n{lines}\n\t.size {name}, .-{name}\n"


_AMD64 = {
    "leaf": """
        lea (%rdi,%rsi), %rax
        ret
    """,
    "with_frame_pointer": """
        push %rbp
        mov %rsp, %rbp
        push %rbx
        sub $24, %rsp
        mov %rdi, %rbx
        call other
        add %rbx, %rax
        mov -8(%rbp), %rbx
        leave
        ret
    """,
    "pushes_in_the_middle": """
        push %rax
        call other
        push %rdi
        push $3
        call other
        pop %rcx
        pop %rdx
        pop %rcx
        ret
    """,
    "saves_by_moves": """
        sub $40, %rsp
        mov %rbx, 8(%rsp)
        mov %r15, 16(%rsp)
        mov %rdi, %rbx
        call other
        mov 8(%rsp), %rbx
        mov 16(%rsp), %r15
        add $40, %rsp
        ret
    """,
    "two_exits": """
        push %rbp
        push %rbx
        push %r12
        sub $16, %rsp
        test %edi, %edi
        je .Lother_exit
        call other
        add $16, %rsp
        pop %r12
        pop %rbx
        pop %rbp
        ret
        .p2align 4
        .Lother_exit:
        mov %edi, %ebx
        call other
        add $16, %rsp
        pop %r12
        pop %rbx
        pop %rbp
        jmp tail
    """,
}
_AMD64_BEYOND = {
    "aligned": """
        mov %rsp, %rax
        push %rbx
        sub $256, %rsp
        and $-64, %rsp
        mov %rax, 152(%rsp)
        call other
        mov 152(%rsp), %rsi
        mov -8(%rsi), %rbx
        lea (%rsi), %rsp
        ret
    """,
    "uses_the_frame_pointer": """
        xor %ebp, %ebp
        .Lloop:
        add (%rdi,%rbp,8), %rax
        inc %rbp
        cmp %rsi, %rbp
        jne .Lloop
        .byte 0xf3, 0xc3  # rep ret, as OpenSSL writes it
    """,
    "begins_with_data": """
        .byte 243, 15, 30, 250
        push %rbx
        call other
        pop %rbx
        .byte 0xf3, 0xc3
    """,
}
_AARCH64 = {
    "leaf": """
        add x0, x0, x1
        ret
    """,
    "with_frame_record": """
        stp x29, x30, [sp, -48]!
        mov x29, sp
        stp x19, x20, [sp, 16]
        stp d8, d9, [sp, 32]
        bl other
        ldp d8, d9, [sp, 32]
        ldp x19, x20, [sp, 16]
        ldp x29, x30, [sp], 48
        ret
    """,
    "without_frame_record": """
        sub sp, sp, 32
        str x30, [sp, 16]
        bl other
        ldr x30, [sp, 16]
        add sp, sp, 32
        b tail
    """,
    "two_exits": """
        cbz x0, .Lreturn
        stp x29, x30, [sp, -16]!
        mov x29, sp
        tbz x1, 3, .Lother_exit
        bl other
        ldp x29, x30, [sp], 16
        .Lreturn:
        ret
        .Lother_exit:
        ldp x29, x30, [sp], 16
        b tail
    """,
    "signed": """
        paciasp
        stp x29, x30, [sp, -16]!
        bl other
        ldp x29, x30, [sp], 16
        autiasp
        ret
    """,
    "signed_with_b": """
        pacibsp
        stp x29, x30, [sp, -16]!
        bl other
        ldp x29, x30, [sp], 16
        autibsp
        ret
    """,
}
_S390X = {
    "leaf": """
        agr %r2, %r3
        br %r14
    """,
    "with_frame": """
        stmg %r6, %r15, 48(%r15)
        lay %r15, -168(%r15)
        std %f8, 160(%r15)
        brasl %r14, other
        ld %f8, 160(%r15)
        lmg %r6, %r15, 216(%r15)
        br %r14
    """,
    "with_registers_in_registers": """
        ldgr %f0, %r14
        ldgr %f2, %r11
        lghi %r11, 3
        lghi %r14, 4
        agr %r2, %r11
        agr %r2, %r14
        lgdr %r11, %f2
        lgdr %r14, %f0
        br %r14
    """,
    "two_exits": """
        ltgr %r2, %r2
        je .Lreturn
        stmg %r13, %r15, 104(%r15)
        aghi %r15, -160
        brasl %r14, other
        lmg %r13, %r15, 264(%r15)
        jg tail
        .Lreturn:
        br %r14
    """,
}


def _source(functions: dict[str, str]) -> str:
    return "\t.text\n" + "\n".join(function(name, body) for name, body in functions.items())


FOR_SCFI = _source(_AMD64)
"""Functions that GNU as describes by ``--scfi``."""
SOURCES = {
    "amd64": _source({**_AMD64, **_AMD64_BEYOND}),
    "aarch64": _source(_AARCH64),
    "aarch64_be": _source({name: body for name, body in _AARCH64.items() if not name.startswith("signed")}),
    "s390x": _source(_S390X),
}
"""By the machine in :data:`tests.code.assembled.TARGETS`."""
NUMBERS = {machine: source.count("%function") for machine, source in SOURCES.items()}
"""Numbers of functions."""
