"""Instructions that destroy the caller's frame pointer, in its register or its slot: nothing is proved after them.

Right functions have the same instructions elsewhere in the frame, or on other registers, and are not called wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from sframe_unwind import elf
from sframe_unwind.code.judge.findings import DWARF
from sframe_unwind.code.judge.judgement import Judgement
from sframe_unwind.verify.code_check import check_elf
from tests.code.assembled import assemble

DEPTHS = (0, 16, 32, 64, 128)
"""Distances of the stack pointer below the slot, in bytes."""
_FAR = 2048
"""Size of the frame of a right function below the slot, in bytes, so that no store in it reaches the slot."""
MOST_UNKNOWN = 0.25

STORES = {
    "amd64": """vmovdqu64 %zmm0,@|vmovdqu %ymm0,@|vmovups %zmm9,@|kmovq %k1,@|kmovw %k2,@|fstpt @|fnsave @
        |fnstenv @|fxsave @|xsave @
        |fistpll @|stmxcsr @|lock xadd %rax,@|xchg %rax,@|lock cmpxchg %rcx,@|lock cmpxchg16b @|movnti %rax,@
        |movntdq %xmm0,@
        |vmovntdq %zmm0,@|vextracti64x4 $1,%zmm0,@|vmovq %xmm20,@|vmovsd %xmm21,@|fnstcw @|sidt @|setne @
        |vpextrq $1,%xmm17,@
        |movhps %xmm1,@|vmovhpd %xmm18,@|vpmovqd %zmm1,@
        |lea @,%rdi;mov $2,%ecx;rep stosq|lea @,%rdi;mov $16,%ecx;rep movsb""",
    "aarch64": """swp x1,x2,@|swpal x1,x2,@|cas x1,x2,@|casal x1,x2,@|casp x2,x3,x4,x5,@|ldadd x1,x2,@
        |ldclral x1,x2,@|ldeor x1,x2,@
        |ldset x1,x2,@|ldsmax x1,x2,@|ldumin x1,x2,@|stadd x1,@|stclrl x1,@|stnp x1,x2,@|sttr x1,@|stlur x1,@
        |stlr x1,@
        |stxr w3,x1,@|stlxp w3,x1,x2,@|str q0,@|stp q0,q1,@|st1 {v0.2d},@|st2 {v0.2d,v1.2d},@|stzg x1,@|stz2g x1,@
        |stgp x1,x2,@
        |str z0,@|str p0,@|st1d {z0.d},p0,@|st1b {z1.b},p1,@|st2d {z0.d,z1.d},p0,@|stnt1d {z0.d},p0,@|sttrb w1,@
        |stlurh w1,@""",
    "s390x": """mvc @(8,%r15),0(%r2)|oc @(8,%r15),0(%r2)|nc @(8,%r15),0(%r2)|xc @(8,%r15),@(%r15)|tr @(8,%r15),0(%r2)
        |ed @(8,%r15),0(%r2)|edmk @(8,%r15),0(%r2)|pack @(8,%r15),0(8,%r2)|unpk @(8,%r15),0(8,%r2)
        |mvo @(8,%r15),0(8,%r2)
        |zap @(8,%r15),0(8,%r2)|ap @(8,%r15),0(8,%r2)|mvn @(8,%r15),0(%r2)|mvz @(8,%r15),0(%r2)|mvcin @(8,%r15),0(%r2)
        |srp @(8,%r15),3,0|stck @(%r15)|stckf @(%r15)|mvghi @(%r15),7|stg %r2,@(%r15)|std %f0,@(%r15)
        |csg %r2,%r3,@(%r15)
        |stm %r2,%r3,@(%r15)|stmg %r2,%r3,@(%r15)|mvi @(%r15),1|lang %r2,%r3,@(%r15)|stfle @(%r15)|vst %v0,@(%r15)
        |la %r2,@(%r15);lghi %r3,8;la %r4,@(%r15);lghi %r5,8;mvcl %r2,%r4
        |la %r2,@(%r15);lghi %r3,8;lghi %r5,0;mvcle %r2,%r4,0|la %r2,@(%r15);mvst %r2,%r4
        |lghi %r1,7;exrl %r1,mvc_@""",
}
"""Stores; ``@`` stands for the address, or its distance from the stack pointer."""
WRITES = {
    "amd64": """kmovq %k1,@|rdpid @|rdfsbase @|rdrand @|rdseed @|mulx %rax,@,%rcx|pext %rax,%rcx,@
        |vcvttsd2usi %xmm0,@|rdsspq @
        |bts %rax,@|btr %rax,@|xchg %rax,@|lock xadd @,(%rdi)|lzcnt %rax,@|vmovq %xmm16,@|vpextrq $1,%xmm17,@
        |movbe (%rdi),@
        |adcx %rax,@|cmovne %rax,@|bswap @""",
    "aarch64": """irg @,x0|addg @,x0,#16,#1|ldg @,[x0]|gmi @,x0,x1|ldadd x1,@,[x0]|swp x1,@,[x0]|cas @,x1,[x0]
        |ldapr @,[x0]|cntd @
        |addvl @,x0,#1|lasta @,p0,z0.d|mrs @,tpidr_el0|fcvtzs @,d0|umov @,v0.d[0]|fmov @,d0|ldtr @,[x0]|ldapur @,[x0]
        |incd @|rdvl @,#1|uqincb @|subp @,x0,x1|ldclr x1,@,[x0]|ldxr @,[x0]|cntp @,p0,p1.b|pacga @,x0,x1""",
    "s390x": """cgdbr @,0,%f0|clgdbr @,0,%f0,0|lgdr @,%f0|ecag @,0,0(%r2)|flogr %r10,%r2|dlgr %r10,%r2
        |mlgr %r10,%r2|cu12 %r10,%r4
        |vlgvg @,%v0,0|ear @,%a0|lngfr @,%r2|popcnt @,%r2|epsw @,%r2|laag @,%r2,0(%r4)|locgrne @,%r2
        |mvcle %r10,%r4,0|ipm @
        |csst 0(%r2),0(%r4),%r12|cgxbr @,0,%f0|etnd @|stfle 0(%r2);lgr @,%r0""",
}
"""Changes of a register, for which ``@`` stands."""
REGISTERS = {"amd64": ("%rbp", "%rdx"), "aarch64": ("x29", "x9"), "s390x": ("%r11", "%r3")}
PROLOGUES = {
    "amd64": ".text;push %rbp;.cfi_adjust_cfa_offset 8;.cfi_offset %rbp,-16;"
    "sub ${size},%rsp;.cfi_adjust_cfa_offset {size}",
    "aarch64": ".arch armv9-a+memtag+sve2+rcpc3;.text;stp x29,x30,[sp,#-16]!;.cfi_adjust_cfa_offset 16;"
    ".cfi_offset x29,-16;.cfi_offset x30,-8;sub sp,sp,#{size};.cfi_adjust_cfa_offset {size}",
    "s390x": ".machine arch13;.text;stg %r11,88(%r15);.cfi_offset %r11,-72;lay %r15,-{size}(%r15);"
    ".cfi_adjust_cfa_offset {size}",
}


class Destroying(NamedTuple):
    name: str
    text: str
    size: int
    is_wrong: bool
    saved: bool = True
    """Whether the frame pointer is in a slot."""


def _functions(machine: str) -> Iterator[Destroying]:
    number = 0
    for text in (one.strip() for one in STORES[machine].split("|")):
        for depth in DEPTHS:
            for is_wrong in (True, False):
                # A right function stores in the middle of a large frame.
                size = depth if is_wrong else _FAR + depth
                place = _place(machine, size if is_wrong else 512)
                yield Destroying(f"f{number}", text.replace("@", place), size, is_wrong)
                number += 1
    for text in (one.strip() for one in WRITES[machine].split("|")):
        for is_wrong in (True, False):
            if is_wrong or "@" in text:
                register = REGISTERS[machine][not is_wrong]
                yield Destroying(f"f{number}", text.replace("@", register), 0, is_wrong, saved=False)
                number += 1


def _place(machine: str, distance: int) -> str:
    if machine == "s390x":
        return str(88 + distance)
    return f"{distance}(%rsp)" if machine == "amd64" else f"[x10]@{distance}"


def _source(machine: str, function: Destroying) -> Iterator[str]:
    yield f".globl {function.name};.type {function.name},%function;.p2align 2"
    text = function.text
    if "[x10]@" in text:  # most have no distance
        text, _, distance = text.replace("[x10]@", "[x10]|").partition("|")
        text = f"add x10,sp,#{distance};{text}"
    if "mvc_" in text:
        text, _, distance = text.partition("mvc_")
        text += f"8f;j 9f;8: mvc {distance}(1,%r15),0(%r2);9:"
    yield f"{function.name}: .cfi_startproc"
    prologue = PROLOGUES[machine].format(size=function.size)
    yield prologue if function.saved else prologue.partition(".text")[0] + ".text"
    yield f"{text};1: nop;2: j 2b" if machine == "s390x" else f"{text};1: nop"
    yield {"amd64": "2: jmp 2b", "aarch64": "2: b 2b", "s390x": ""}[machine]
    yield f".cfi_endproc;.size {function.name},.-{function.name}"


@pytest.mark.parametrize("machine", ["amd64", "aarch64", "s390x"])
def test_nothing_is_proved_after_an_instruction_that_destroys_the_frame_pointer(machine: str, tmp_path: Path) -> None:
    functions = list(_functions(machine))
    lines = [line for function in functions for part in _source(machine, function) for line in part.split(";")]
    path = assemble(machine, "\n".join([*lines, ""]), tmp_path / "f.o")
    with elf.opened(path) as file:
        symbols, verdict = file.symbols, check_elf(file, None)
    worst = {(symbols.name(one.start) or "").partition("+")[0]: one.worst[DWARF] for one in verdict.functions}
    proved = [one.text for one in functions if one.is_wrong and worst[one.name] is Judgement.PROVED]
    assert not proved
    right = [one for one in functions if not one.is_wrong]
    assert not [one.text for one in right if worst[one.name] is Judgement.WRONG]
    unknown = [one.text for one in right if worst[one.name] is Judgement.UNKNOWN]
    assert len(unknown) <= MOST_UNKNOWN * len(right), sorted(set(unknown))
