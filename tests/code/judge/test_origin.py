"""The instruction that a finding names: the one that made the code differ from the table."""

from __future__ import annotations

from pathlib import Path

from tests.code.assembled import report_on

LATE_ROW_AND_A_BRANCH = """
    .globl f
    .type f, %function
f:  .cfi_startproc
    push %rbx
    .cfi_def_cfa_offset 16
    sub $8,%rsp
    .cfi_def_cfa_offset 24
    test %edi,%edi
    add $8,%rsp
    jne two
    .cfi_def_cfa_offset 16
    pop %rbx
    .cfi_def_cfa_offset 8
    jmp *%rax
two:
    .cfi_def_cfa_offset 24
    pop %rbx
    .cfi_def_cfa_offset 8
    ret
    .cfi_endproc
    .size f, .-f
"""


def test_a_branch_in_a_block_is_no_origin(tmp_path: Path) -> None:
    """The table is wrong since the `add`, and the findings on both ways from the branch name the `add`."""
    found = report_on("amd64", LATE_ROW_AND_A_BRANCH, tmp_path)
    dwarf = [finding for finding in found.findings if finding.table == "dwarf"]
    assert ["since `add $0x8,%rsp`" in finding.code for finding in dwarf] == [True, True]
