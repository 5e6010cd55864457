"""s390x's loops over blocks store one object, whose size is not known, and not several of 256 bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from sframe_unwind.code.judge.findings import DWARF
from tests.code.assembled import report_on

FUNCTION = """
    .text
    .globl f
    .type f, %function
f:  .cfi_startproc
    stmg %r6,%r15,48(%r15)
    .cfi_offset %r11,-72
    .cfi_offset %r14,-48
    .cfi_offset %r15,-40
    lay %r15,-240(%r15)
    .cfi_def_cfa_offset 400
    {before}
1:  {block}
    {counting} 1b
2:  exrl %r5,3f
    lmg %r6,%r15,288(%r15)
    .cfi_restore %r11
    .cfi_restore %r14
    .cfi_restore %r15
    .cfi_def_cfa_offset 160
    br %r14
3:  xc 0(1,%r2),0(%r2)
    .cfi_endproc
    .size f, .-f
    """
"""The object at 160(%r15) is followed by the words of the caller, with the saved registers from 288(%r15) on."""
SKIPPED = "la %r2,160(%r15); srlg %r0,%r5,8; ltgr %r0,%r0; je 2f"
CLEARED = "pfd 2,1024(%r2); xc 0(256,%r2),0(%r2); la %r2,256(%r2)"


@pytest.mark.parametrize(
    ("before", "block", "counting"),
    [
        (SKIPPED, CLEARED, "brctg %r0,"),
        (SKIPPED, CLEARED, "brct %r0,"),
        (SKIPPED, "mvi 0(%r2),48; mvc 1(255,%r2),0(%r2); la %r2,256(%r2)", "brctg %r0,"),
        (SKIPPED, "mvc 0(256,%r2),0(%r3); la %r3,256(%r3); la %r2,256(%r2)", "brctg %r0,"),
    ],
)
def test_what_is_stored_by_blocks_stays_in_its_object(before: str, block: str, counting: str, tmp_path: Path) -> None:
    found = report_on("s390x", FUNCTION.format(before=before, block=block, counting=counting), tmp_path)
    assert not found.counts[DWARF].wrong
    assert not found.counts[DWARF].unknown


@pytest.mark.parametrize(
    ("before", "block", "counting"),
    [
        ("la %r2,160(%r15); lghi %r0,1", CLEARED, "brctg %r0,"),
        (SKIPPED, "xc 0(256,%r2),0(%r2); la %r2,8(%r2)", "brctg %r0,"),
        (SKIPPED, "xc 0(256,%r2),0(%r2)", "brctg %r0,"),
        (SKIPPED, "xc 0(200,%r2),0(%r2); la %r2,256(%r2)", "brctg %r0,"),
        (SKIPPED, "aghi %r2,128; xc 0(256,%r2),0(%r2); la %r2,256(%r2)", "brctg %r0,"),
        (SKIPPED, CLEARED, "j"),
        (SKIPPED, "xc 0(256,%r2),0(%r2); la %r2,256(%r2)", "brctg %r2,"),
    ],
)
def test_other_stores_may_overwrite_what_follows(before: str, block: str, counting: str, tmp_path: Path) -> None:
    found = report_on("s390x", FUNCTION.format(before=before, block=block, counting=counting), tmp_path)
    assert found.counts[DWARF].unknown


def test_a_list_of_facilities_has_the_size_that_a_register_holds(tmp_path: Path) -> None:
    for count, is_known in ((0, True), (24, False)):
        before, block = f"lghi %r0,{count}; stfle 160(%r15)", "la %r2,160(%r15)"
        found = report_on("s390x", FUNCTION.format(before=before, block=block, counting="brctg %r0,"), tmp_path)
        assert bool(found.counts[DWARF].unknown) is not is_known
