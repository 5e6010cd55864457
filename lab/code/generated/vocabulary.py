"""The parts of random functions, for each machine.

Code that violates the assumptions in docs/verify-reference.md is left out: stores with a variable index stay in their
object, and no store is above memory that was allocated by an alignment. Comparisons of the stack pointer with
addresses in the frame, and variable numbers in the stack pointer, are also left out: the interpretation does not use
them.

====================== ==================================================================================
in a line              is
``{r}``                a register of any kind
``{d}``                a register that is rarely the stack or frame pointer
``{s}``                the stack or frame pointer, mostly
``{e}``                ``{d}``, except s390x's ``%r0``, which cannot be the base of an address
``{k}``, ``{u}``       multiples of eight: from -64, and those from 0 that every store can have
``{a}``, ``{n}``       a number of bytes to allocate, and one to add before or after a store
``{i}``                a small number
``{h}``, ``{l}``       a helper of :mod:`lab.code.executed.judge`, and a label
====================== ==================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Vocabulary(NamedTuple):
    """The lines for one machine."""

    trap: str
    """Follows each function, so that none runs into the next."""
    compare: str
    """First line: the flags at the entry are the same in each execution."""
    aligns: str
    """Matches an instruction that aligns the stack pointer."""
    above: str
    """Matches an operand in memory at or above the stack pointer."""
    registers: tuple[str, ...]
    """For ``{r}`` and ``{d}``: registers that hold any value."""
    frames: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    """Prologues with their epilogues, each of which ends with the return."""
    plain: tuple[str, ...]
    """Instructions that change the frame only if an operand belongs to it."""
    risky: tuple[str, ...]
    """Instructions that change the frame."""
    conditions: tuple[tuple[str, str], ...]
    """A comparison, and a jump after it."""
    loops: tuple[tuple[str, str], ...]
    """The line before a loop, and the last lines of the loop, which jump back to ``{l}``."""
    pointers: tuple[str, ...]
    """The registers for ``{s}``."""
    halves: Mapping[str, str]
    """The names of registers of 32 bits, for ``{r:w}``; where a machine has such names."""


_AMD64_REGISTERS = ("rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "rbx", "r12")
_AMD64_HALVES = {
    **{name: f"e{name[1:]}" for name in ("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi")},
    **{name: f"{name}d" for name in ("r8", "r9", "r10", "r11", "r12")},
}

AMD64 = Vocabulary(
    trap="ud2",
    compare="cmp $3,%esi",
    aligns=r"and \$-\d+,%rsp",
    above=r"(?<![-\d])\d*\(%rsp",
    registers=_AMD64_REGISTERS,
    frames=(
        ((), ("ret",)),
        (("push %rbp", "mov %rsp,%rbp"), ("pop %rbp", "ret")),
        (("push %rbp", "mov %rsp,%rbp", "sub $48,%rsp"), ("leave", "ret")),
        (("push %rbp", "mov %rsp,%rbp", "push %rbx", "sub $24,%rsp"), ("mov -8(%rbp),%rbx", "leave", "ret")),
        (("push %rbx", "push %rbp", "sub $24,%rsp"), ("add $24,%rsp", "pop %rbp", "pop %rbx", "ret")),
        (("push %r12", "push %rbp", "push %rbx"), ("pop %rbx", "pop %rbp", "pop %r12", "ret")),
        (("sub $40,%rsp", "mov %rbp,16(%rsp)"), ("mov 16(%rsp),%rbp", "add $40,%rsp", "ret")),
        (("enter $32,$0",), ("leave", "ret")),
        (
            (
                "lea 8(%rsp),%r10",
                "and $-32,%rsp",
                "push -8(%r10)",
                "push %rbp",
                "mov %rsp,%rbp",
                "push %r10",
                "sub $40,%rsp",
            ),
            ("mov -8(%rbp),%r10", "leave", "lea -8(%r10),%rsp", "ret"),
        ),
        (
            ("push %rbp", "mov %rsp,%rbp", "and $-64,%rsp", "sub $64,%rsp"),
            ("mov %rbp,%rsp", "pop %rbp", "ret"),
        ),
        (("mov %rsp,%rax", "push %rbp", "mov %rax,%rbp"), ("lea -8(%rbp),%rsp", "pop %rbp", "ret")),
        (("xchg %rbp,%r11", "push %r11", "sub $16,%rsp"), ("add $16,%rsp", "pop %rbp", "ret")),
    ),
    plain=(
        *("mov %{r},%{d}", "mov %{r:w},%{d:w}", "lea {k}(%{r}),%{d}", "lea (%{r},%{r}),%{d}", "xchg %{d},%{d}"),
        *("add ${i},%{d}", "and $-16,%{d}", "xor %{d:w},%{d:w}", "or %{r},%{d}", "neg %{d}", "bswap %{d}", "inc %{d}"),
        *(
            "mov {k}(%rdi),%{d}",
            "mov %{r},{k}(%rdi)",
            "mov {k}(%{s}),%{d}",
            "movzbl {k}(%{s}),%{d:w}",
            "imul $3,%{r},%{d}",
        ),
        *("bt ${i},%{r}", "sete %dl", "test %{r},%{r}", "cmp %{r},{k}(%{s})", "movq %{r},%xmm1", "movq %xmm1,%{d}"),
        *("movups %xmm0,{k}(%rdi)", "movdqu {k}(%{s}),%xmm0", "nop", "cld", "popcnt %{r},%{d}", "movslq %esi,%{d}"),
        *("call {h}", "call {h}", "cmove %{r},%{d}", "shl $1,%{d}", "pushf", "lahf", "mov %fs:0,%{d}"),
    ),
    risky=(
        *("push %{r}", "pop %{d}", "push ${i}", "sub ${k},%rsp", "add ${k},%rsp", "lea {k}(%rsp),%rsp"),
        *("mov %{r},{k}(%{s})", "mov %{r:w},{k}(%{s})", "movb ${i},{k}(%{s})", "movq ${i},{k}(%{s})", "leave"),
        *(
            "lea {k}(%{s}),%{r}",
            "mov %{s},%{r}",
            "mov %{r},%{s}",
            "and $-32,%rsp",
            "xchg %{s},%{r}",
            "add ${i},{k}(%{s})",
        ),
        *(
            "cmove %{r},%{s}",
            "cmovne {k}(%{s}),%{s}",
            "xadd %{r},%{s}",
            "movups %xmm0,{k}(%{s})",
            "xchg %{r},{k}(%{s})",
        ),
        *("pop {k}(%{s})", "push {k}(%{s})", "sete {k}(%{s})", "mov {k}(%rbp),%rbp", "lock xadd %{r},{k}(%{s})"),
        *("lea {k}(%{s}),%rdi", "popf", "bts ${i},{k}(%{s})", "cmpxchg %{r},{k}(%{s})", "movb %{r},%{s}", "neg %{s}"),
        *("lea (%{s},%rsi,8),%{r}", "movsq"),
    ),
    conditions=(
        ("test ${i},%sil", "jz {l}"),
        ("test ${i},%sil", "jnz {l}"),
        ("cmp ${i},%esi", "ja {l}"),
        ("test %{r},%{r}", "js {l}"),
        ("bt ${i},%{r}", "jc {l}"),
    ),
    loops=(("mov $3,%ecx", "dec %ecx; jnz {l}"), ("lea 1(%rsi),%rdx", "sub $1,%rdx; ja {l}")),
    pointers=("rsp", "rsp", "rbp"),
    halves=_AMD64_HALVES,
)

_X = tuple(f"x{number}" for number in (2, 3, 4, 8, 9, 10, 15, 16, 17, 19, 20))

AARCH64 = Vocabulary(
    trap="brk #1",
    compare="cmp x1,#3",
    aligns=r"and x9,x29",
    above=r"\[sp,?(#\d|\]|x)",
    registers=_X,
    frames=(
        ((), ("ret",)),
        (("stp x29,x30,[sp,#-32]!", "mov x29,sp"), ("ldp x29,x30,[sp],#32", "ret")),
        (
            ("stp x29,x30,[sp,#-64]!", "mov x29,sp", "stp x19,x20,[sp,#16]"),
            ("ldp x19,x20,[sp,#16]", "ldp x29,x30,[sp],#64", "ret"),
        ),
        (("sub sp,sp,#64", "stp x29,x30,[sp,#48]", "add x29,sp,#48"), ("ldp x29,x30,[sp,#48]", "add sp,sp,#64", "ret")),
        (("stp x29,x30,[sp,#-32]!", "mov x29,sp", "sub sp,sp,#96"), ("mov sp,x29", "ldp x29,x30,[sp],#32", "ret")),
        (("str x30,[sp,#-16]!",), ("ldr x30,[sp],#16", "ret")),
        (("mov x9,x30",), ("mov x30,x9", "ret")),
        (("mov x15,x30", "sub sp,sp,#32"), ("add sp,sp,#32", "ret x15")),
        (("stp x19,x29,[sp,#-48]!", "str x30,[sp,#16]"), ("ldr x30,[sp,#16]", "ldp x19,x29,[sp],#48", "ret")),
        (
            ("stp x29,x30,[sp,#-48]!", "mov x29,sp", "and x9,x29,#0xffffffffffffffc0", "sub sp,x9,#128"),
            ("mov sp,x29", "ldp x29,x30,[sp],#48", "ret"),
        ),
    ),
    plain=(
        *("mov {d},{r}", "mov {d:w},{r:w}", "add {d},{r},#{k}", "sub {d},{r},{r}", "and {d},{r},#0xfffffffffffffff0"),
        *("eor {d},{d},{d}", "ldr {d},[x0,#{u}]", "str {r},[x0,#{u}]", "ldr {d},[{s},#{k}]", "ldrb {d:w},[{s},#{u}]"),
        *(
            "ldp {d},x11,[x0,#{k}]",
            "stp {r},{r},[x0,#{k}]",
            "csel {d},{r},{r},eq",
            "cmp {r},#{i}",
            "madd {d},{r},{r},{r}",
        ),
        *("mov {d},#{i}", "movk {d},#{i},lsl #16", "ubfx {d},{r},#4,#8", "rev {d},{r}", "fmov d0,{r}", "fmov {d},d0"),
        *("str d0,[x0,#{u}]", "ldr q0,[{s},#{u}]", "nop", "bl {h}", "bl {h}", "neg {d},{r}", "orr {d},xzr,{r}"),
    ),
    risky=(
        *(
            "str {r},[{s},#{k}]",
            "str {r:w},[{s},#{k}]",
            "strb {r:w},[{s},#{u}]",
            "stp {r},{r},[{s},#{k}]",
            "str d0,[{s},#{u}]",
        ),
        *(
            "sub sp,sp,#{a}",
            "add sp,sp,#{a}",
            "mov sp,x29",
            "add x29,sp,#{a}",
            "mov x29,{r}",
            "mov x30,{r}",
            "mov {d},x30",
        ),
        *(
            "str x30,[sp,#-16]!",
            "ldr x30,[sp],#16",
            "ldr x30,[{s},#{k}]",
            "ldr x29,[{s},#{k}]",
            "mov {d},{s}",
            "add {d},{s},#{k}",
        ),
        *(
            "str {r},[{s}],#{n}",
            "ldr {d},[{s},#{n}]!",
            "csel x29,x29,{r},eq",
            "csel x30,{r},x30,ne",
            "bl {h}",
            "mov w29,w29",
        ),
        *(
            "mov w30,w30",
            "eor x30,x30,{r}",
            "eor x29,x29,{r}",
            "ldp x29,x30,[{s},#{k}]",
            "stp x29,x30,[{s},#{k}]",
            "paciasp",
        ),
        *(
            "autiasp",
            "str q0,[{s},#{u}]",
            "st1 {{v0.16b}},[{s}]",
            "stxr w11,{d},[{s}]",
            "xpaclri",
        ),
        *(
            "add x30,x30,#0",
            "mov x0,{s}",
            "swp {d},{r},[{s}]",
            "ldadd {r},{d},[{s}]",
            "cinc x29,x29,eq",
        ),
    ),
    conditions=(
        ("tst x1,#1", "b.eq {l}"),
        ("cmp x1,#{i}", "b.hi {l}"),
        ("cmp x29,{r}", "b.lo {l}"),
        ("nop", "cbz {r},{l}"),
        ("nop", "tbnz {r},#3,{l}"),
    ),
    loops=(("mov w12,#3", "subs w12,w12,#1; b.ne {l}"), ("add x13,x1,#1", "subs x13,x13,#1; b.hi {l}")),
    pointers=("sp", "sp", "x29"),
    halves={name: f"w{name[1:]}" for name in (*_X, "x29", "x30", "x1", "x0")} | {"sp": "wsp"},
)

_R = tuple(f"%r{number}" for number in (0, 1, 3, 4, 5, 6, 7, 10, 12, 13))

S390X = Vocabulary(
    trap=".insn e,0x0001",
    compare="cghi %r3,3",
    aligns=r"(?!)",
    above=r"(?!)",
    registers=_R,
    frames=(
        ((), ("br %r14",)),
        (("stmg %r11,%r15,88(%r15)", "aghi %r15,-160"), ("lmg %r11,%r15,248(%r15)", "br %r14")),
        (("stmg %r11,%r15,88(%r15)", "lay %r15,-200(%r15)", "lgr %r11,%r15"), ("lmg %r11,%r15,288(%r11)", "br %r14")),
        (("stmg %r14,%r15,112(%r15)", "aghi %r15,-160"), ("aghi %r15,160", "lmg %r14,%r14,112(%r15)", "br %r14")),
        (("stmg %r11,%r14,88(%r15)",), ("lmg %r11,%r14,88(%r15)", "br %r14")),
        (
            ("ldgr %f0,%r11", "ldgr %f2,%r15", "aghi %r15,-176", "lgr %r11,%r15"),
            ("lgdr %r15,%f2", "lgdr %r11,%f0", "br %r14"),
        ),
        (
            ("lgr %r1,%r15", "stmg %r6,%r15,48(%r15)", "aghi %r15,-168", "stg %r1,0(%r15)"),
            ("lg %r15,0(%r15)", "lmg %r6,%r14,48(%r15)", "br %r14"),
        ),
        (("lgr %r5,%r14",), ("br %r5",)),
    ),
    plain=(
        *(
            "lgr {d},{r}",
            "lr {d},{r}",
            "la {d},{u}({e})",
            "lay {d},{k}({e})",
            "agr {d},{r}",
            "sgr {d},{r}",
            "xgr {d},{d}",
        ),
        *(
            "lghi {d},{i}",
            "lhi {d},{i}",
            "ogr {d},{r}",
            "lg {d},{u}(%r2)",
            "stg {r},{u}(%r2)",
            "lg {d},{u}({s})",
            "llgc {d},{u}({s})",
        ),
        *(
            "llgfr {d},{r}",
            "lcgr {d},{r}",
            "ldgr %f4,{r}",
            "lgdr {d},%f4",
            "std %f4,{u}(%r2)",
            "ld %f4,{u}({s})",
            "nopr",
        ),
        *(
            "brasl %r14,{h}",
            "brasl %r14,{h}",
            "risbg {d},{r},0,63,0",
            "locgre {d},{r}",
            "cgr {r},{r}",
            "sllg {d},{r},3",
            "ic {d},{u}({s})",
        ),
    ),
    risky=(
        *(
            "stg {r},{u}({s})",
            "st {r},{u}({s})",
            "stc {r},{u}({s})",
            "mvi {u}({s}),{i}",
            "mvghi {u}({s}),{i}",
            "stmg {d},{d},{u}({s})",
        ),
        *(
            "aghi %r15,-{a}",
            "aghi %r15,{a}",
            "lay %r15,{k}(%r15)",
            "la %r15,{u}(%r11)",
            "lgr %r11,{r}",
            "lgr %r14,{r}",
            "lgr {d},%r14",
        ),
        *(
            "lgr {d},{s}",
            "lgr %r15,{r}",
            "lg %r14,{u}({s})",
            "lg %r11,{u}({s})",
            "lmg %r11,%r14,{u}({s})",
            "stmg %r11,%r15,{u}({s})",
        ),
        *(
            "mvc {u}(8,{s}),{u}(%r2)",
            "mvc {u}(8,{s}),{u}({s})",
            "xc {u}(8,{s}),{u}({s})",
            "std %f4,{u}({s})",
            "ldgr %f0,{s}",
            "lgdr %r11,%f0",
        ),
        *(
            "locgre %r11,{r}",
            "locgrne %r14,{r}",
            "lr %r11,%r11",
            "aghi %r11,{i}",
            "lgfr %r11,%r11",
            "ear %r11,%a0",
        ),
        *(
            "larl %r14,data",
            "basr %r1,0",
            "asi {u}({s}),{i}",
            "agsi {u}({s}),{i}",
            "stmh %r6,%r7,{u}({s})",
            "lm %r10,%r11,{u}({s})",
        ),
        *(
            "stocge {r},{u}({s})",
            "csg {d},{r},{u}({s})",
            "icm %r14,1,{u}({s})",
            "vst %v0,{u}({s})",
            "iilf %r11,{i}",
        ),
    ),
    conditions=(
        ("tmll %r3,1", "jz {l}"),
        ("cghi %r3,{i}", "jh {l}"),
        ("nop 0", "cgijl %r3,{i},{l}"),
        ("ltgr {r},{r}", "jl {l}"),
    ),
    loops=(("lghi %r0,3", "brctg %r0,{l}"), ("la %r1,1(%r3)", "brctg %r1,{l}")),
    pointers=("%r15", "%r15", "%r11"),
    halves={},
)

VOCABULARIES = {"amd64": AMD64, "aarch64": AARCH64, "s390x": S390X}
