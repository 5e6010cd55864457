"""After the last stub of a table of stubs comes other code, to which no stub leads."""

from __future__ import annotations

from pathlib import Path

from sframe_unwind import elf
from sframe_unwind.code.judge.findings import DWARF, Counts
from sframe_unwind.verify.code_check import check_elf
from tests.code.assembled import assemble
from tests.elf.objects import run, tools_for

SOURCE = """
    .section .text.unlikely,"ax",@progbits
    .type cold,@function
cold:
    .cfi_startproc
    .cfi_def_cfa_offset 16
    call    abort@PLT
    .cfi_endproc
    .size cold,.-cold
    .text
    .globl f
    .type f,@function
f:
    .cfi_startproc
    sub     $8,%rsp
    .cfi_def_cfa_offset 16
    call    elsewhere@PLT
    mov     elsewhere@GOTPCREL(%rip),%rdx
    test    %eax,%eax
    jne     cold
    add     $8,%rsp
    .cfi_def_cfa_offset 8
    ret
    .cfi_endproc
    .size f,.-f
"""
"""A call through the table and a read of the address, for which GNU ld makes a stub in `.plt.got`."""


def test_a_stub_does_not_enter_the_code_after_it(tmp_path: Path) -> None:
    """The part of a function after the stubs is entered with the frame of the rest."""
    file = assemble("amd64", SOURCE, tmp_path / "f.o")
    linked = tmp_path / "f.so"
    run(tools_for("amd64", 3) / "ld", "-shared", file, "-o", linked)
    with elf.opened(linked) as binary:
        sections = {section.name: section for section in binary.sections}
        assert sections[".plt.got"].end == sections[".text"].address
        verdict = check_elf(binary, None)
    assert not verdict.findings
    assert verdict.counts[DWARF] == Counts(proved=verdict.instructions, wrong=0, unknown=0)
