"""The effects of functions in the file are known from their code; the effects of others, from the ABI."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sframe_unwind import elf
from sframe_unwind.cli import main
from sframe_unwind.code.judge.findings import DWARF, Finding
from sframe_unwind.code.judge.judgement import Judgement
from sframe_unwind.verify.code_check import check_elf
from tests.code.assembled import assemble

HELPERS = {
    "amd64": {
        "keeps": "pxor %xmm1,%xmm1;ret",
        "keeps_through_another": "call keeps;ret",
        "writes_r11": "xor %r11d,%r11d;ret",
        "jumps_to_writing": "jmp writes_r11",
        "changes_rbp": "xor %ebp,%ebp;ret",
        "changes_rbx": "xor %ebx,%ebx;ret",
        "saves_rbx": "push %rbx;.cfi_adjust_cfa_offset 8;xor %ebx,%ebx;pop %rbx;.cfi_adjust_cfa_offset -8;ret",
        "only_saves_rbx": "push %rbx;.cfi_adjust_cfa_offset 8;xor %ebx,%ebx;pop %rax;.cfi_adjust_cfa_offset -8;ret",
        # Unless it is known that `ends` does not return, %rbx is lost.
        "restores_rbx_or_ends": (
            "push %rbx;.cfi_adjust_cfa_offset 8;xor %ebx,%ebx;test %edi,%edi;je 1f;pop %rbx;.cfi_adjust_cfa_offset -8;"
            "ret;1: .cfi_adjust_cfa_offset 8;call ends;pop %rax;.cfi_adjust_cfa_offset -8;ret"
        ),
        "leads_to_restoring": "call restores_rbx_or_ends;ret",
        "changes_nothing_that_is_reached": "ret;xor %ebx,%ebx;ret",
        "has_a_part": "push %rbx;.cfi_adjust_cfa_offset 8;xor %ebx,%ebx;jmp is_a_part",
        "is_a_part": ".cfi_def_cfa_offset 16;.cfi_offset %rbx,-16;xor %ebx,%ebx;pop %rbx;.cfi_def_cfa_offset 8;ret",
        "restores_and_jumps": (
            "push %rbx;.cfi_adjust_cfa_offset 8;xor %ebx,%ebx;pop %rbx;.cfi_adjust_cfa_offset -8;jmp changes_rbx"
        ),
        "is_retpoline": "call 2f;1: pause;jmp 1b;2: mov %rax,(%rsp);ret",
        "ends": "1: ud2",
        "ends_in_another": "jmp ends",
    },
    "aarch64": {
        "keeps": "mov x0,#3;ret",
        "writes_x15": "mov x15,#3;ret",
        "changes_x29": "mov x29,#3;ret",
        "ends": "1: b 1b",
    },
    "s390x": {
        "keeps": "lghi %r2,3;br %r14",
        "writes_r1": "lghi %r1,3;br %r14",
        "changes_r11": "lghi %r11,3;br %r14",
        "ends": "1: j 1b",
    },
}
IN_R11 = (
    "lea 8(%rsp),%r11;.cfi_def_cfa %r11,0;sub $128,%rsp;and $-32,%rsp;call {};lea -8(%r11),%rsp;.cfi_def_cfa %rsp,8;ret"
)
IN_RBX = (
    "push %rbx;.cfi_def_cfa_offset 16;lea 16(%rsp),%rbx;.cfi_def_cfa %rbx,0;and $-32,%rsp;call {};"
    "lea -16(%rbx),%rsp;.cfi_def_cfa %rsp,16;pop %rbx;.cfi_def_cfa_offset 8;ret"
)
UNTOUCHED = "sub $8,%rsp;.cfi_def_cfa_offset 16;call {};nop;add $8,%rsp;.cfi_def_cfa_offset 8;ret"
IN_X15 = "mov x15,x30;.cfi_register x30,x15;bl {};add x0,x0,#1;ret x15"
X29_UNTOUCHED = (
    "str x30,[sp,#-16]!;.cfi_def_cfa_offset 16;.cfi_offset x30,-16;bl {};nop;"
    "ldr x30,[sp],#16;.cfi_def_cfa_offset 0;.cfi_restore x30;ret"
)
_SAVED = ".cfi_offset x29,-64;.cfi_offset x30,-56;mov x29,sp;.cfi_def_cfa_register x29"
_RESTORED = "mov sp,x29;ldp x29,x30,[sp],#64;.cfi_def_cfa sp,0;.cfi_restore x29;.cfi_restore x30;ret"
KEEPS_SP = (
    f"stp x29,x30,[sp,#-64]!;.cfi_def_cfa_offset 64;{_SAVED};"
    f"mov x8,sp;str x8,[x29,#40];mov x8,#0;bl {{}};ldr x8,[x29,#40];mov sp,x8;{_RESTORED}"
)
"""The saved frame pointer is at the stack pointer, whose value is also in a slot above, as before an allocation."""
DIGITS = (
    f"stp x29,x30,[sp,#-64]!;.cfi_def_cfa_offset 64;{_SAVED};"
    "sub sp,sp,#32;add x0,sp,#25;mov x1,x0;1: strb w2,[x0,#-1]!;subs w3,w3,#1;b.ne 1b;sub x1,x1,x0;"
    f"str x0,[x4];str x1,[x4,#8];bl {{}};{_RESTORED}"
)
"""Writes a number from its last digit on, in 25 bytes that end 7 bytes below the saved frame pointer."""
MANY = (
    "sub sp,sp,#160;.cfi_adjust_cfa_offset 160;stp x29,x30,[sp,#80];.cfi_offset x29,-80;.cfi_offset x30,-72;mov x0,sp;"
    + ";".join(f"tbz w1,#{at},1f;add x0,sp,#{8 * at};1:" for at in (1, 2, 3, 4, 5, 15, 16, 17, 18))
    + "bl {};ldp x29,x30,[sp,#80];.cfi_restore x29;.cfi_restore x30;add sp,sp,#160;.cfi_adjust_cfa_offset -160;ret"
)
"""The callee gets one of many addresses on both sides of the saved frame pointer."""
IN_R1 = "lgr %r1,%r14;.cfi_register %r14,%r1;brasl %r14,{};aghi %r2,1;br %r1"
R11_UNTOUCHED = (
    "stg %r14,112(%r15);.cfi_offset %r14,-48;lay %r15,-160(%r15);.cfi_def_cfa_offset 320;brasl %r14,{};nop;"
    "lg %r14,272(%r15);.cfi_restore %r14;la %r15,160(%r15);.cfi_def_cfa_offset 160;br %r14"
)
_RBP_SAVED = "push %rbp;.cfi_def_cfa_offset 16;.cfi_offset %rbp,-16;mov %rsp,%rbp;.cfi_def_cfa_register %rbp"
_RBP_RESTORED = "nop;leave;.cfi_def_cfa %rsp,8;.cfi_restore %rbp;ret"
BYTE = f"{_RBP_SAVED};sub $16,%rsp;lea -1(%rbp),%rdi;call {{}};{_RBP_RESTORED}"
"""The callee gets the address of the last byte below a saved register."""
EXCHANGED = (
    f"{_RBP_SAVED};sub $1024,%rsp;1:lea -600(%rbp),%rdi;mov %rdi,-16(%rbp);movb $1,-16(%rbp);mov -16(%rbp),%rdi;"
    "mov %rsi,(%rdi);call {};test %eax,%eax;je 1b;movb $2,-16(%rbp);mov -16(%rbp),%rdi;mov %rax,(%rdi);"
    f"{_RBP_RESTORED}"
)
"""A slot with an address is used for a byte again."""
KEPT_BYTE = (
    f"{_RBP_SAVED};sub $128,%rsp;lea -100(%rbp),%rdi;mov %rdi,-16(%rbp);call {{}};movb $1,-16(%rbp);call {{}};"
    f"movzbl -16(%rbp),%eax;{_RBP_RESTORED}"
)
SEPARATE = (
    f"{_RBP_SAVED};sub $80,%rsp;mov $201,%eax;xor %edi,%edi;syscall;mov %rax,-32(%rbp);lea -64(%rbp),%rdx;"
    "mov %rdx,-40(%rbp);movq $0,-24(%rbp);movq $0,-16(%rbp);lea -24(%rbp),%r10;and $1,%esi;mov (%r10,%rsi,8),%rdi;"
    f"add $64,%rdi;xor %edx,%edx;call {{}};{_RBP_RESTORED}"
)
"""Below an array, there is a word that holds no address, and then one that holds an address of another object."""
PROVED, UNKNOWN, WARNED = "proved", "unknown", "warned"
CALLERS = {
    "amd64": [
        (IN_R11, "keeps", PROVED),
        (IN_R11, "keeps_through_another", PROVED),
        (IN_R11, "writes_r11", WARNED),
        (IN_R11, "jumps_to_writing", WARNED),
        (IN_R11, "elsewhere", WARNED),
        (IN_RBX, "keeps", PROVED),
        (IN_RBX, "saves_rbx", PROVED),
        (IN_RBX, "only_saves_rbx", UNKNOWN),
        (IN_RBX, "restores_rbx_or_ends", PROVED),
        (IN_RBX, "leads_to_restoring", PROVED),
        (IN_RBX, "elsewhere", PROVED),
        (IN_RBX, "changes_rbx", UNKNOWN),
        (IN_RBX, "changes_nothing_that_is_reached", PROVED),
        (IN_RBX, "has_a_part", PROVED),
        (IN_RBX, "restores_and_jumps", UNKNOWN),
        (UNTOUCHED, "keeps", PROVED),
        (UNTOUCHED, "changes_rbx", PROVED),
        (UNTOUCHED, "is_retpoline", PROVED),
        (UNTOUCHED, "elsewhere", PROVED),
        (UNTOUCHED, "changes_rbp", UNKNOWN),
        (BYTE, "elsewhere", PROVED),
        (BYTE.replace("-1(", "-4("), "elsewhere", UNKNOWN),
        (EXCHANGED, "elsewhere", PROVED),
        (EXCHANGED.replace("-600", "-240"), "elsewhere", UNKNOWN),
        (EXCHANGED.replace("$1,-16", "$1,-15"), "elsewhere", UNKNOWN),
        (KEPT_BYTE, "elsewhere", PROVED),
        (SEPARATE, "elsewhere", PROVED),
        (SEPARATE.replace("mov %rax,-32", "lea -64(%rbp),%rax;mov %rax,-32"), "elsewhere", UNKNOWN),
    ],
    "aarch64": [
        (IN_X15, "keeps", PROVED),
        (IN_X15, "writes_x15", WARNED),
        (IN_X15, "elsewhere", WARNED),
        (X29_UNTOUCHED, "keeps", PROVED),
        (X29_UNTOUCHED, "elsewhere", PROVED),
        (X29_UNTOUCHED, "changes_x29", UNKNOWN),
        (KEEPS_SP, "keeps", PROVED),
        (KEEPS_SP, "elsewhere", PROVED),
        (DIGITS, "keeps", PROVED),
        (DIGITS, "elsewhere", PROVED),
        (MANY, "keeps", PROVED),
        (MANY, "elsewhere", PROVED),
        (DIGITS.replace("str x0", "sxtw x1,w1;str x0"), "elsewhere", PROVED),
    ],
    "s390x": [
        (IN_R1, "keeps", PROVED),
        (IN_R1, "writes_r1", WARNED),
        (IN_R1, "elsewhere", WARNED),
        (R11_UNTOUCHED, "keeps", PROVED),
        (R11_UNTOUCHED, "elsewhere", PROVED),
        (R11_UNTOUCHED, "changes_r11", UNKNOWN),
    ],
}
ASSUMED = {"amd64": "callee changes r11", "aarch64": "callee changes x15", "s390x": "callee changes r1"}
AFTER_END = {
    "amd64": "sub $8,%rsp;.cfi_def_cfa_offset 16;call {};.cfi_def_cfa_offset 77;add $8,%rsp;.cfi_def_cfa_offset 8;ret",
    "aarch64": "str x30,[sp,#-16]!;.cfi_def_cfa_offset 16;.cfi_offset x30,-16;bl {};.cfi_def_cfa_offset 80;nop;ret",
    "s390x": "stg %r14,112(%r15);.cfi_offset %r14,-48;brasl %r14,{};.cfi_def_cfa_offset 320;lghi %r2,0;br %r14",
}
"""Functions that do not return from a call after which the table has another frame's row."""

TAIL = """
    .text
    .globl caller, switcher
    .type g,@function
g:  .cfi_startproc
    push %rbx
    .cfi_adjust_cfa_offset {}
    mov %rdi,%rbx
    call helper
    pop %rbx
    .cfi_adjust_cfa_offset -{}
    ret
    .cfi_endproc
    .size g,.-g
    .type caller,@function
caller: .cfi_startproc
    jmp g
    .cfi_endproc
    .size caller,.-caller
    .type switcher,@function
switcher: .cfi_startproc
    sub $0x28,%rsp
    .cfi_adjust_cfa_offset 0x28
    call helper
    cmp $4,%al
    ja g
    add $0x28,%rsp
    .cfi_adjust_cfa_offset -0x28
    ret
    .cfi_endproc
    .size switcher,.-switcher
    .globl user
    .type user,@function
user: .cfi_startproc
    sub $8,%rsp
    .cfi_adjust_cfa_offset 8
    call switcher
    add $8,%rsp
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
    .size user,.-user
"""
"""In `switcher` a conditional jump to `g` that is never taken; in `caller` a tail call of `g`; a user of `switcher`."""

REPLACED = """
    .text
    .globl f
    .type f,%function
f:  .cfi_startproc
    stp x29,x30,[sp,#-32]!
    .cfi_def_cfa_offset 32
    .cfi_offset x29,-32
    .cfi_offset x30,-24
    mov x29,sp
    bl g
    str x0,[x29,#8]
    nop
    ldp x29,x30,[sp],#32
    .cfi_def_cfa_offset 0
    .cfi_restore x29
    .cfi_restore x30
    ret {}
    .cfi_endproc
    .size f,.-f
"""


def _function(name: str, body: str, visible: bool = False) -> list[str]:
    head = [f".globl {name}"] * visible
    head += [f".type {name},%function", ".p2align 2", f"{name}: .cfi_startproc"]
    return [*head, *body.split(";"), ".cfi_endproc", f".size {name},.-{name}"]


class Checked:
    """The findings in an assembled source, by function."""

    def __init__(self, machine: str, source: str, folder: Path) -> None:
        with elf.opened(assemble(machine, source, folder / "f.o")) as binary:
            verdict = check_elf(binary, None)
            self.worst = {binary.function_name(one.start): one.worst[DWARF] for one in verdict.functions}
            self.findings: dict[str, list[Finding]] = {}
            for finding in verdict.findings:
                name = binary.function_name(finding.address).partition("+")[0]
                self.findings.setdefault(name, []).append(finding)


@pytest.mark.parametrize("machine", ["amd64", "aarch64", "s390x"])
@pytest.mark.parametrize("callers_first", [True, False])
def test_what_callees_keep(machine: str, callers_first: bool, tmp_path: Path) -> None:
    lines = [line for name, body in HELPERS[machine].items() for line in _function(name, body)]
    callers = [
        line
        for number, (body, callee, _) in enumerate(CALLERS[machine])
        for line in _function(f"caller_{number}", body.replace("{}", callee), visible=True)
    ]
    found = Checked(
        machine, "\n".join([".text", *(callers + lines if callers_first else lines + callers), ""]), tmp_path
    )
    for number, (_, callee, expected) in enumerate(CALLERS[machine]):
        name = f"caller_{number}"
        wanted = Judgement.PROVED if expected == PROVED else Judgement.UNKNOWN
        assert found.worst[name] is wanted, (name, callee)
        assumed = {finding.assumes for finding in found.findings.get(name, [])}
        assert assumed == ({(ASSUMED[machine],)} if expected == WARNED else set()), (name, callee)


@pytest.mark.parametrize("machine", ["amd64", "aarch64", "s390x"])
def test_callees_that_do_not_return(machine: str, tmp_path: Path) -> None:
    lines = [line for name, body in HELPERS[machine].items() for line in _function(name, body)]
    ending = [name for name in HELPERS[machine] if name.startswith("ends")]
    for callee in (*ending, "keeps"):
        lines += _function(f"calls_{callee}", AFTER_END[machine].format(callee), visible=True)
    found = Checked(machine, "\n".join([".text", *lines, ""]), tmp_path)
    for callee in ending:
        assert f"calls_{callee}" not in found.findings
    assert found.worst["calls_keeps"] is Judgement.WRONG


def test_a_function_that_is_entered_by_tail_calls_is_no_part_of_another(tmp_path: Path) -> None:
    right = Checked("amd64", TAIL.format(8, 8), tmp_path)
    assert not right.findings
    assert right.worst["user"] is Judgement.PROVED
    assert Checked("amd64", TAIL.format(16, 16), tmp_path).findings.keys() == {"g"}


LAST = """
	.text
	.type	start,%function
	.globl	start
start:	.cfi_startproc
	.cfi_undefined x30
	mov	x29,#0
	mov	x30,#0
	bl	elsewhere
	cbnz	w0,1f
	b	.
1:	b	fails
	.cfi_endproc
	.size	start,.-start
	nop
	.type	fails,%function
fails:	.cfi_startproc
	{}
	stp	x29,x30,[sp,#-16]!
	.cfi_def_cfa_offset 16
	.cfi_offset x29,-16
	.cfi_offset x30,-8
	bl	abort
	.cfi_endproc
	.size	fails,.-fails
"""


def test_a_function_that_begins_with_a_mark_is_no_part_of_another(tmp_path: Path) -> None:
    """The code that the dynamic linker's start jumps to after an error."""
    marked = Checked("aarch64", LAST.format("bti c"), tmp_path)
    assert "fails" not in marked.findings
    assert marked.worst["fails"] is Judgement.PROVED
    assert Checked("aarch64", LAST.format("nop"), tmp_path).worst["fails"] is Judgement.WRONG


def test_a_function_may_return_to_what_it_stores_over_its_return_address(tmp_path: Path) -> None:
    """If it returns to the stored value, like `__builtin_eh_return`, that is unknown; otherwise its row is wrong."""
    assert Checked("aarch64", REPLACED.format(""), tmp_path).worst["f"] is Judgement.UNKNOWN
    assert Checked("aarch64", REPLACED.format("x9"), tmp_path).worst["f"] is Judgement.WRONG


def test_a_warning_is_no_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = assemble("amd64", "\n".join([".text", *_function("f", IN_R11.format("elsewhere")), ""]), tmp_path / "f.o")
    assert main(["verify", "--against", "code", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("  warning: .text+0x15 f+0x15: cfa: the code has no register at a constant distance")
    assert lines[1].endswith("say r11 (assumed: callee changes r11)")
    assert main(["verify", "--against", "code", "--json", str(path)]) == 0
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert file["code"]["findings"][0]["assumes"] == ["callee changes r11"]
    assert file["code"]["dwarf"]["wrong"] == 0


LINKED = "{entered};lgr %r1,{link};br %r1"


@pytest.mark.parametrize(("link", "expected"), [("%r0", Judgement.PROVED), ("%r14", Judgement.WRONG)])
def test_a_function_that_is_entered_with_another_link_register(link: str, expected: Judgement, tmp_path: Path) -> None:
    """Like `__fentry__` on s390x: according to its rows, it returns through that register."""
    body = LINKED.format(entered=".cfi_register %r14,%r0;lghi %r2,0", link=link)
    source = "\n".join([".text", *_function("f", body, visible=True), ""])
    assert Checked("s390x", source, tmp_path).worst["f"] is expected


JUMPS = {
    "amd64": "mov 8(%rdi),%rbp;mov (%rdi),%rsp;jmp *16(%rdi)",
    "s390x": "lg %r11,8(%r2);lg %r4,16(%r2);lg %r15,0(%r2);br %r4",
}


@pytest.mark.parametrize("machine", list(JUMPS))
def test_the_frame_pointer_of_the_frame_that_is_gone_to_is_not_wrong(machine: str, tmp_path: Path) -> None:
    """Like `longjmp`."""
    source = "\n".join([".text", *_function("f", JUMPS[machine], visible=True), ""])
    found = Checked(machine, source, tmp_path)
    assert not found.findings
    assert found.worst["f"] is Judgement.UNKNOWN


def test_the_return_address_of_the_frame_that_is_gone_to_is_not_wrong(tmp_path: Path) -> None:
    """Like libitm's `GTM_longjmp`, which pops its shadow stack after the change of the stack pointer."""
    body = """
    mov (%rsi),%rcx
    .cfi_def_cfa %rsi,0
    .cfi_offset %rip,16
    .cfi_register %rsp,%rcx
    mov 8(%rsi),%rbp
    mov %rcx,%rsp
    rdsspq %rcx
    test %rcx,%rcx
    je 1f
    incsspq %rcx
1:  jmp *16(%rsi)
    """
    found = Checked("amd64", "\n".join([".text", *_function("f", body, visible=True), ""]), tmp_path)
    assert not found.findings
    assert found.worst["f"] is Judgement.UNKNOWN


WITHIN_A_CALL = {
    "amd64": "sub $24,%rsp;.cfi_def_cfa_offset 32;.byte 0xe8;.cfi_def_cfa_offset {};.long elsewhere-.-4;"
    ".cfi_def_cfa_offset 32;add $24,%rsp;.cfi_def_cfa_offset 8;ret",
    "s390x": "stg %r14,112(%r15);.cfi_offset %r14,-48;lay %r15,-160(%r15);.cfi_def_cfa_offset 320;.short 0xc0e5;"
    ".cfi_def_cfa_offset {};.long 0;.cfi_def_cfa_offset 320;lg %r14,272(%r15);.cfi_restore %r14;"
    "la %r15,160(%r15);.cfi_def_cfa_offset 160;br %r14",
}
"""Functions with a row that begins within a call, whose last byte unwinders look up while the callee runs."""


@pytest.mark.parametrize(("machine", "right", "wrong"), [("amd64", 32, 8), ("s390x", 320, 160)])
def test_a_row_that_begins_within_a_call(machine: str, right: int, wrong: int, tmp_path: Path) -> None:
    lines = [".text"]
    for name, offset in (("right", right), ("wrong", wrong)):
        lines += _function(name, WITHIN_A_CALL[machine].format(offset), visible=True)
    found = Checked(machine, "\n".join([*lines, ""]), tmp_path)
    assert found.worst == {"right": Judgement.PROVED, "wrong": Judgement.WRONG}
    (finding,) = found.findings["wrong"]
    assert finding.what == "cfa"
