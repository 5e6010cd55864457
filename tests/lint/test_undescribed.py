"""`lint --for linux-kernel` lists functions without rows; the assembly is like that of a kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from sframe_unwind.cli import main
from sframe_unwind.lint import PROFILES, lint
from sframe_unwind.lint import catalogue as c
from sframe_unwind.lint.undescribed import ENDLESS, ENTRY_CODE, LEAF, TRAMPOLINE
from tests.elf.objects import FUNCTION, link, run, tools_for

SOURCE = (
    FUNCTION
    + """
    .macro end name
    .size \\name, . - \\name
    .endm
    .text
    function start
    .cfi_startproc
    ret
    .cfi_endproc
    end start
    function leaf
    add x0, x0, #1
    cbz x0, 1f
    sub x1, x0, x1
1:  ret
    end leaf
    function pushes
    nop
    stp x29, x30, [sp, #-16]!
    bl start
    ldp x29, x30, [sp], #16
    ret
    end pushes
    function jumps
    adrp x1, start
    b start
    end jumps
    function unknown
    nop
    mov sp, x3
    ret
    end unknown
    function hangs
    b hangs
    end hangs
    .fill 64, 1, 7
    function after_data
    .cfi_startproc
    ret
    .cfi_endproc
    end after_data
    .fill 64, 1, 0
replacing:
    .rept 20
    mov x1, #1
    .endr
    .section .altinstructions, "a"
    .4byte leaf-., replacing-.
    .2byte 24
    .byte 80, 80
    .text
    .globl __entry_text_start
__entry_text_start:
    function exception
    sub sp, sp, #336
    bl start
    add sp, sp, #336
    eret
    end exception
    .globl __entry_text_end
__entry_text_end:
"""
)
WHAT = {
    "leaf": f"16 bytes: {LEAF}",
    "pushes": "20 bytes: not a leaf: SP, frame pointer or return address is another at +0x8",
    "jumps": f"8 bytes: {TRAMPOLINE}",
    "unknown": "12 bytes: not known by the code from +0x8",
    "hangs": f"4 bytes: {ENDLESS}",
    "exception": f"16 bytes: {ENTRY_CODE}",
}


@pytest.fixture(scope="module")
def assembled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("undescribed")
    source = folder / "code.s"
    source.write_text(SOURCE, encoding="ascii")
    run(tools_for("aarch64", 3) / "as", "--gsframe", source, "-o", folder / "code.o")
    return folder / "code.o"


@pytest.fixture(scope="module", params=["program", "object"])
def file(request: pytest.FixtureRequest, assembled: Path) -> Path:
    """Return a linked file, and one with relocations, like a kernel module."""
    if request.param == "object":
        return assembled
    return link(tools_for("aarch64", 3), "aarch64", assembled.with_name("program"), assembled)


def test_each_function_is_listed_with_what_it_is(file: Path) -> None:
    (section,) = lint(file, [PROFILES["linux-kernel"]]).sections
    found = [shown.finding for shown in section.findings if shown.finding.rule is c.FUNCTION_WITHOUT_ROWS]
    named = {finding.where.split()[-1].split("+")[0]: finding.message for finding in found}
    data = [finding.message for finding in found if "no symbol" in finding.message]
    assert {name: named[name] for name in WHAT} == WHAT
    assert data == ["64 bytes: no symbol: data, or code"]
    assert len(found) == len(WHAT) + 1


def test_the_share_that_cannot_be_passed(file: Path) -> None:
    """Leaf functions and trampolines are passed; padding, and what replaces other instructions, is not executed."""
    (section,) = lint(file, [PROFILES["linux-kernel"]]).sections
    (share,) = (shown.finding.message for shown in section.findings if shown.finding.rule is c.NOT_PASSED)
    assert share == (
        "116 of 292 bytes of code (39.73%) are neither described nor leaf functions; what has no rows:"
        " no symbol: 1 (64 bytes), not a leaf: 1 (20 bytes), leaf: 1 (16 bytes), entry code: 1 (16 bytes),"
        " not known by the code: 1 (12 bytes), trampoline: 1 (8 bytes), does not return: 1 (4 bytes)"
    )


def test_the_text_has_them_all(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "--for", "linux-kernel", str(file)]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "SF071" in line]
    assert len(lines) == len(WHAT) + 1


def test_other_consumers_are_not_told(file: Path) -> None:
    (section,) = lint(file).sections
    rules = {shown.finding.rule for shown in section.findings}
    assert not rules & {c.FUNCTION_WITHOUT_ROWS, c.NOT_PASSED}
