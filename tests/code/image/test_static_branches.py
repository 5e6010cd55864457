"""A static branch of Linux is a nop or a jump, whichever of them is in the file: rows must be right both ways."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from sframe_unwind.code.judge.findings import DWARF, SFRAME, Counts
from tests.code.assembled import report_on

FRAMES = {
    "amd64": ("push %rbx; .cfi_adjust_cfa_offset 8; .cfi_offset rbx,-16", "pop %rbx; .cfi_adjust_cfa_offset -8; ret"),
    "aarch64": (
        "stp x29,x30,[sp,#-32]!; .cfi_def_cfa_offset 32; .cfi_offset 29,-32; .cfi_offset 30,-24",
        "ldp x29,x30,[sp],#32; .cfi_def_cfa_offset 0; .cfi_restore 29; .cfi_restore 30; ret",
    ),
    "s390x": (
        "stmg %r11,%r15,88(%r15); .cfi_offset 11,-72; .cfi_offset 14,-48; .cfi_offset 15,-40;"
        "lay %r15,-160(%r15); .cfi_adjust_cfa_offset 160",
        "lmg %r11,%r15,248(%r15); .cfi_adjust_cfa_offset -160;"
        ".cfi_restore 11; .cfi_restore 14; .cfi_restore 15; br %r14",
    ),
}
JUMPS = {"amd64": "jmp", "aarch64": "b", "s390x": "brcl 15,"}
NOPS = {"amd64": "nopl 0(%rax,%rax)", "aarch64": "nop", "s390x": "brcl 0,"}
WRITES = {"amd64": "mov $1,%eax", "aarch64": "mov w0,#1", "s390x": "lghi %r2,1"}
FUNCTION = """
    .text
    .globl f
    .type f,%function
f:  .cfi_startproc
    {begin}
key:
    {branch}
    {write}
    .cfi_remember_state
    {end}
    .cfi_restore_state
.Lyes:
    .cfi_adjust_cfa_offset {error}
    {write}
    .cfi_adjust_cfa_offset -{error}
    {end}
    .cfi_endproc
    .size f,.-f
    .section {section},"aw"
    .balign 8
    .globl __start___jump_table, __stop___jump_table
__start___jump_table:
    {entry}
__stop___jump_table:
"""
ENTRY = ".4byte key-., .Lyes-.; .8byte 0"


def checked(
    machine: str, folder: Path, branch: str, entry: str = ENTRY, section: str = "__jump_table", error: int = 0
) -> tuple[list[str], Mapping[str, Counts]]:
    begin, end = FRAMES[machine]
    source = FUNCTION.format(
        begin=begin, end=end, branch=branch, write=WRITES[machine], entry=entry, section=section, error=error
    )
    found = report_on(machine, source.replace(";", "\n"), folder)
    return [finding.what for finding in found.findings], found.counts


def nop(machine: str) -> str:
    return f"{NOPS[machine]} .Lyes" if NOPS[machine].endswith(",") else NOPS[machine]


def jump(machine: str) -> str:
    return f"{JUMPS[machine]} .Lyes"


@pytest.mark.parametrize("section", ["__jump_table", ".data"])
@pytest.mark.parametrize("branch", [nop, jump])
@pytest.mark.parametrize("machine", FRAMES)
def test_both_ways_are_proved(machine: str, branch: object, section: str, tmp_path: Path) -> None:
    assert callable(branch)
    findings, counts = checked(machine, tmp_path, branch(machine), section=section)
    assert not findings
    for table in (SFRAME, DWARF):
        assert counts[table].unknown == 0
        assert counts[table].proved > 6


@pytest.mark.parametrize("branch", [nop, jump])
@pytest.mark.parametrize("machine", FRAMES)
def test_a_wrong_row_is_found_on_the_way_that_the_file_does_not_have(
    machine: str, branch: object, tmp_path: Path
) -> None:
    assert callable(branch)
    findings, counts = checked(machine, tmp_path, branch(machine), error=8)
    assert set(findings) == {"cfa"}
    for table in (SFRAME, DWARF):
        assert counts[table].wrong == 1


@pytest.mark.parametrize(("branch", "other"), [(nop, jump), (jump, nop)])
def test_what_replaces_an_instruction_when_the_kernel_starts_is_proved_too(
    branch: object, other: object, tmp_path: Path
) -> None:
    assert callable(branch)
    assert callable(other)
    entry = f".4byte key-., other-.; .2byte 24; .byte 4, 4; .text; other: {other('aarch64')}"
    findings, counts = checked("aarch64", tmp_path, branch("aarch64"), entry=entry, section=".altinstructions")
    assert not findings
    for table in (SFRAME, DWARF):
        assert counts[table].unknown == 0
        assert counts[table].proved > 6


@pytest.mark.parametrize("machine", FRAMES)
def test_without_an_entry_one_way_is_unknown(machine: str, tmp_path: Path) -> None:
    for branch in (nop, jump):
        _, counts = checked(machine, tmp_path, branch(machine), entry="")
        assert counts[DWARF].unknown > 0


@pytest.mark.parametrize("machine", FRAMES)
def test_what_is_neither_a_jump_nor_a_nop_stays_as_it_is(machine: str, tmp_path: Path) -> None:
    _, without = checked(machine, tmp_path, WRITES[machine], entry="")
    _, counts = checked(machine, tmp_path, WRITES[machine])
    assert counts == without
