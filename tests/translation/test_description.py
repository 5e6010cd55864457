"""Descriptions of functions that SFrame describes."""

from __future__ import annotations

import pytest

from sframe_unwind.errors import FormatError
from sframe_unwind.sframe.constants import AbiNumber, PcType
from sframe_unwind.sframe.encode import SectionSpec, encode, usual_table
from sframe_unwind.sframe.encode_rule import function as function_from_rules
from sframe_unwind.sframe.section import Section
from sframe_unwind.translation.description import of_sframe
from tests.translation.descriptions import RULE


def test_rows_that_repeat_too_often() -> None:
    table = usual_table(3, AbiNumber.AMD64_ENDIAN_LITTLE)
    function = function_from_rules(table, 0x1000, 1 << 31, [(0, RULE)])
    mask = function._replace(pc_type=PcType.MASK, repetition_size=1)
    (decoded,) = Section(encode(SectionSpec(0x100, (table._replace(functions=(mask,)),))), 0x100).functions()
    with pytest.raises(FormatError, match="rows that repeat to more than 1,048,576"):
        of_sframe(decoded)


@pytest.mark.parametrize("pc_type", PcType)
def test_function_without_rows(pc_type: PcType) -> None:
    table = usual_table(3, AbiNumber.AMD64_ENDIAN_LITTLE)
    function = function_from_rules(table, 0x1000, 64, [])._replace(pc_type=pc_type, repetition_size=16)
    (decoded,) = Section(encode(SectionSpec(0x100, (table._replace(functions=(function,)),))), 0x100).functions()
    assert not any(of_sframe(decoded).rules)
