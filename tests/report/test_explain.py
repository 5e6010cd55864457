"""The explanation of an address in a frame: the CFA that it prints, and its remark on the alignment."""

from __future__ import annotations

import pytest

from sframe_unwind.report.explain import FrameContext, explain
from sframe_unwind.sframe.constants import AbiNumber
from sframe_unwind.sframe.encode import SectionSpec, encode, usual_table
from sframe_unwind.sframe.encode_rule import function
from sframe_unwind.sframe.section import Section
from sframe_unwind.unwind.modules import Module, Modules
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule, saved_at_cfa


@pytest.mark.parametrize(("offset", "remark"), [(16, ""), (24, ", which is not a multiple of 16")])
def test_item_30_a_cfa_that_is_no_multiple_of_16_is_remarked(offset: int, remark: str) -> None:
    table = usual_table(3, AbiNumber.AARCH64_ENDIAN_LITTLE)
    rule = UnwindRule(RegisterRule(31, offset, False), saved_at_cfa(-8), None)
    table = table._replace(functions=(function(table, 0x1000, 0x20, [(0, rule)]),))
    section = Section(encode(SectionSpec(0x2000, (table,))), 0x2000)
    assert section.arch is not None
    modules = Modules(section.arch, [Module("program", [(0x1000, 0x1020)], lambda: section)])
    here = FrameContext(0x7000, 0, {0x7000 + offset - 8: 0x1008}.__getitem__, None)
    assert f"       CFA = {0x7000 + offset:#x}{remark}" in explain(modules, 0x1004, "f", here)
