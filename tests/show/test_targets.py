"""Instructions in `show` are written, and name the addresses to which they refer, as by objdump."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from sframe_unwind.cli import main
from tests.elf.objects import run, tools_for
from tests.hanging import HANG
from tests.missing import package_needed, toolchain_needed

NEAR = {
    "amd64": """
        jmp 1f
    1:  call 2f
    2:  lea (%rip), %rax
        lea 8(%rip), %rax
        lea -4(%rip), %rax
        mov f(%rip), %rax
        jmp *4(%rip)
        loop f
        movl $5, 4(%rip)
        push 4(%rip)
        mov $5, %eax
        jmp f
    """,
    "aarch64": """
        b 1f
    1:  bl 2f
    2:  cbz x0, f
        tbz w0, #3, 2b
        adr x0, f
        ldr x0, f
        b.eq f
        ldr d0, 2b
        ldrsw x3, 2b
        prfm pldl1keep, 2b
        ldr x1, [x2, #8]
        mov x1, #8
    """,
    "s390x": """
        j 1f
    1:  brasl %r14, f
        jnle f
        brcl 0, f
        pfdrl 1, f
        .irp name, larl, lrl, lgrl, lgfrl, llgfrl, lhrl, lghrl, llhrl, llghrl, strl, stgrl, sthrl, exrl
        \\name %r1, f
        .endr
        .irp name, crl, cgrl, cgfrl, clrl, clgrl, clgfrl, chrl, cghrl, clhrl, clghrl, brct, brctg, brcth, bras
        \\name %r1, f
        .endr
        .irp name, crje, cgrje, clrjh, clgrjl, brxh, brxhg, brxle, brxlg
        \\name %r1, %r2, f
        .endr
        .irp name, cije, cgijne, clije, clgijhe
        \\name %r1, 32, f
        .endr
        bprp 5, f, f
        bprp 5, 3f, 4f
    3:  bpp 5, 3b, 32(%r4)
    4:  bpp 5, f, 0(%r4)
        srl %r1, 32
        br %r14
        basr %r14, %r1
        lgfi %r1, 4096
    """,
}
"""Functions whose instructions refer to addresses below 10, which capstone writes without ``0x``, and to others."""
WRAPPING = {
    "amd64": "lea -64(%rip), %rax; jmp .-64; jne .-64; call .-4096",
    "aarch64": "adr x0, .-4; adr x0, .-64; ldr x0, .-64; b .-64; bl .-64; cbz x0, .-64; tbz w0, #3, .-64; b.eq .-64",
    "s390x": "j .-64; larl %r1, .-64; brasl %r14, .-64; bprp 5, .-64, .-64; bpp 5, .-64, 0(%r4); crje %r1, %r2, .-64",
}
"""Instructions whose targets would be before address 0, so that they are at the end of the address space."""
JUMP = """
f:  .cfi_startproc
    push %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset rbp, -16
    mov %rsp, %rbp
    .cfi_def_cfa_register rbp
    test %edi, %edi
    jne 1f
    jmp 1f
    nop
1:  mov %rax, %rbp
    loop 1b
    pop %rbp
    .cfi_def_cfa rsp, 8
    ret
    .cfi_endproc
    .size f, .-f
"""


NOTATION = """
    sub $8, %rsp
    mov 8(%rsp), %rax
    mov %eax, -4(%rsp)
    lea 8(%rax,%rcx,8), %rdx
    lea 1(%rax,%rcx), %rdx
    lea (%rax,%rcx), %rdx
    mov (,%rcx,8), %rdx
    mov %fs:0, %rax
    mov 0, %r8
    movaps %xmm5, 7
    movb $7, 0
    mov %fs:4(%rax), %eax
    mov %eax, %fs:0x28
    push $1
    push 8(%r13)
    jmp *8(%rax)
    enter $8, $1
    ret $8
    int $5
    out %al, $7
    movabs $0x8000000000000000, %rax
    movabs $0x123456789, %r10
    mov $0xffffffff80000000, %rsi
    .irp size, b, w, l, q
    mov\\size $5, (%rdi)
    mov\\size $5, 8(%rdi,%r8)
    add\\size $3, (%r9)
    shl\\size $3, 4(%rax)
    shl\\size %cl, (%rdi)
    neg\\size (%rdi,%rsi,2)
    inc\\size 9(%rdi)
    mul\\size (%rax)
    .endr
    .irp register, %al, %ah, %ax, %eax, %rax, %bpl, %bp, %esi, %rsi, %r10b, %r10w, %r10d, %r10
    mov \\register, \\register
    mov \\register, (%rdi)
    cmp $5, \\register
    shr $3, \\register
    shr %cl, \\register
    not \\register
    imul \\register
    .endr
    .irp register, %ax, %esi, %rsi, %r10
    cmovne (%rdi), \\register
    bsf \\register, \\register
    popcnt 1(%rdi), \\register
    shld $4, \\register, (%rdi)
    bt $7, \\register
    .endr
    movq %xmm0, %rax
    movq %rax, %xmm0
    movq (%rax), %mm1
    movd %eax, %xmm1
    pshufd $1, %xmm0, %xmm1
    vmovdqu8 (%rsi), %ymm18{%k2}{z}
    vpcmpeqb (%rdi,%rdx), %ymm18, %k1{%k2}
    lock xadd %rax, (%rdi)
    lock incl (%rdi)
    rdrand %eax
    shlx %rcx, (%rdi), %rax
    cmp $-1, %eax
    cmp $-0x7e, %rbx
    cmpl $-1, 0x28(%rax)
    cmpw $-15, 6(%rdx)
    testb $-29, (%rcx)
    imul $-42, -3(%rbx), %ebp
    imul $-0x7cb1f4a1, %rdx, %rdx
    push $-1
    add $-128, %rsp
    sub (%rbp), %r14
    mov (%r13), %r8
    mov %r12, (%r13,%rbx)
    movl $22, %fs:(%r13)
    lea (%ebp), %eax
    lock cmpxchg %edx, (%rbp)
    movb $1, (%r12)
    rep stosl
    rep stosq
    lodsb
    repne scasb
    repe cmpsb
    fadd %st(2)
    fadd %st, %st(2)
    fmul %st(0)
    fmulp
    faddp %st, %st(2)
    fsub %st, %st(3)
    fsub %st(3), %st
    fsubrp %st, %st(4)
    fdivr %st, %st(1)
    fdivp
    fucomi %st(1)
    fucomip %st(2)
    fcomip %st(1)
    fcmovb %st(1), %st
    fcmovb %st(0), %st
    fxch %st(3)
    fld %st(0)
    fstp %st(1)
    fucom %st(1)
    ffree %st(0)
"""
"""What capstone writes in other ways than objdump: numbers below 10, a scale of 1, sizes, masks, large and negative
numbers, a displacement that is encoded although it is 0, and the top of the stack of the x87."""


def assembled(tmp_path: Path, abi: str, source: str) -> Path:
    """Return an object file whose code begins with another section."""
    written, path = tmp_path / "near.s", tmp_path / "near.o"
    written.write_text(f'.section .text.other,"ax"\n.skip 64\n.text\n.type f, %function\n{source}\n', encoding="utf-8")
    with toolchain_needed():
        flags = ["-march=z14"] if abi == "s390x" else []
        run(tools_for(abi, 3) / "as", *flags, "--gsframe", written, "-o", path)
    return path


def texts_by_objdump(path: Path, abi: str) -> dict[int, str]:
    """Return the instructions of the section ``.text`` by offset."""
    command = [str(tools_for(abi, 3) / "objdump"), "-d", "--no-show-raw-insn", "-j", ".text", str(path)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=HANG).stdout
    return {int(at, 16): text for at, text in re.findall(r"^ +([0-9a-f]+):\t(.*)$", printed, re.MULTILINE)}


def texts(path: Path, capsys: pytest.CaptureFixture[str], *flags: str) -> dict[int, str]:
    """Return the instructions of the function by offset."""
    assert main(["show", str(path), "f", "--json", *flags]) in (0, 1)
    (function,) = json.loads(capsys.readouterr().out)["functions"]
    return {row["address"]: row["text"] for row in function["rows"]}


@pytest.mark.parametrize("abi", NEAR)
def test_targets_are_named_as_by_objdump(abi: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package_needed("capstone")
    path = assembled(tmp_path, abi, f"f: .cfi_startproc\n{NEAR[abi]}\n.cfi_endproc\n.size f, .-f")
    expected, found = texts_by_objdump(path, abi), texts(path, capsys, "--no-code")

    def names(texts: dict[int, str]) -> dict[int, list[str]]:
        return {at: re.findall(r"<([^>]*)>", texts[at]) for at in found}

    assert names(found) == names(expected)
    assert sum(map(len, names(found).values())) >= 9


def test_notation_of_amd64_is_objdumps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package_needed("capstone")
    path = assembled(tmp_path, "amd64", f"f: .cfi_startproc\n{NOTATION}\n.cfi_endproc\n.size f, .-f")
    expected, found = texts_by_objdump(path, "amd64"), texts(path, capsys, "--no-code")
    assert len(found) > 150
    assert found == {at: " ".join(expected[at].split()) for at in found}


@pytest.mark.parametrize("abi", WRAPPING)
def test_targets_before_the_first_address_are_those_of_objdump(
    abi: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package_needed("capstone")
    path = assembled(tmp_path, abi, f"f: .cfi_startproc\n{WRAPPING[abi]}\n.cfi_endproc\n.size f, .-f")
    expected, found = texts_by_objdump(path, abi), texts(path, capsys, "--no-code")
    targets = {at: re.findall(r"(f[0-9a-f]{15}) <", expected[at]) for at in found}
    assert {at: re.findall(r"0x(f[0-9a-f]{15})", found[at]) for at in found} == targets
    assert all(targets.values())


def test_instruction_in_a_sentence_is_that_of_the_listing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In an object file, both have the offset in the section, and not the address that this project gives the code."""
    package_needed("pyvex")
    path = assembled(tmp_path, "amd64", JUMP)
    (jump,) = {text.partition(" <")[0] for text in texts(path, capsys).values() if text.startswith("jmp")}
    assert main(["verify", "--against", "code", str(path)]) == 1
    said = re.findall(r"since `(jmp .*?)` at \.text\+", capsys.readouterr().out)
    assert main(["show", str(path), "f"]) == 1
    said += re.findall(r"since `(jmp .*?)` at \.text\+", capsys.readouterr().out)
    assert len(said) >= 2
    assert set(said) == {jump}
