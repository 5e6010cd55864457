"""The encoder makes rows from rules: decoding gives the same rules; rules without an encoding are refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sframe_unwind.errors import EncodeError
from sframe_unwind.sframe.constants import ARCH_BY_ABI, AbiNumber, FdeType
from sframe_unwind.sframe.encode import SectionSpec, TableSpec, encode, usual_table
from sframe_unwind.sframe.encode_rule import function, row
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import Match
from sframe_unwind.unwind_rule import CFA, OUTERMOST, RegisterRule, UnwindRule, saved_at_cfa
from tests.sframe.strategies import KINDS, default_rules, flexible_rules

AMD64 = AbiNumber.AMD64_ENDIAN_LITTLE
AARCH64 = AbiNumber.AARCH64_ENDIAN_LITTLE
S390X = AbiNumber.S390X_ENDIAN_BIG
RA = saved_at_cfa(-8)
ADDRESS = 0x10000


def decoded(table: TableSpec, rule: UnwindRule, fde_type: FdeType) -> UnwindRule:
    """Return the rule that a section gives for the row of a rule: encoded and decoded again."""
    made = function(table, 0x1000, 16, [])._replace(rows=(row(table, 0, rule, fde_type),), fde_type=fde_type)
    section = Section(encode(SectionSpec(ADDRESS, (table._replace(functions=(made,)),))), ADDRESS)
    match = section.lookup(0x1000)
    assert isinstance(match, Match)
    return match.rule


@settings(max_examples=300)
@given(st.data())
def test_a_default_row_says_its_rule(data: Any) -> None:
    version, abi = data.draw(st.sampled_from(KINDS))
    rule = data.draw(default_rules(version, abi))
    assert decoded(usual_table(version, abi), rule, FdeType.DEFAULT) == rule


@settings(max_examples=300)
@given(st.data())
def test_a_flexible_row_says_its_rule(data: Any) -> None:
    abi = data.draw(st.sampled_from(AbiNumber))
    rule = data.draw(flexible_rules(abi))
    assert decoded(usual_table(3, abi), rule, FdeType.FLEX) == rule


@pytest.mark.parametrize("fde_type", list(FdeType))
@pytest.mark.parametrize("abi", list(AbiNumber))
def test_item_14_the_outermost_frame(abi: AbiNumber, fde_type: FdeType) -> None:
    assert row(usual_table(3, abi), 4, OUTERMOST, fde_type) == (4, 0, ())
    assert decoded(usual_table(3, abi), OUTERMOST, fde_type) == OUTERMOST


def test_the_smallest_words() -> None:
    table = usual_table(2, AMD64)
    for offset, info in ((127, 0x03), (-128, 0x03), (128, 0x23), (-32768, 0x23), (32768, 0x43), (-(1 << 31), 0x43)):
        assert row(table, 0, UnwindRule(RegisterRule(7, offset, False), RA, None)) == (0, info, (offset,))


def test_item_16_the_smallest_words_of_control_words_are_unsigned() -> None:
    table = usual_table(3, S390X)
    for register, info, word in ((16, 0x04, -127), (31, 0x04, -7), (32, 0x24, 0x101), (1 << 28, 0x44, -(1 << 31) + 1)):
        rule = UnwindRule(RegisterRule(register, 160, False), None, None)
        assert row(table, 0, rule, FdeType.FLEX) == (0, info, (word, 0))


def test_fixed_offsets_need_no_words() -> None:
    table = usual_table(2, AMD64)._replace(fixed_fp_offset=-16)
    rule = UnwindRule(RegisterRule(7, 16, False), RA, saved_at_cfa(-16))
    assert row(table, 0, rule).words == (16,)
    assert row(table, 0, rule._replace(fp=saved_at_cfa(-24))).words == (16, -24)
    assert decoded(table, rule, FdeType.DEFAULT) == rule
    with pytest.raises(EncodeError, match="FP not saved"):
        row(table, 0, rule._replace(fp=None))
    arm = usual_table(2, AARCH64)._replace(fixed_ra_offset=-8, fixed_fp_offset=-16)
    saved = UnwindRule(RegisterRule(31, 16, False), saved_at_cfa(-8), saved_at_cfa(-16))
    assert row(arm, 0, saved).words == (16,)
    assert row(arm, 0, saved._replace(fp=saved_at_cfa(-24))).words == (16, -8, -24)


def test_item_19_s390x_version_2_has_registers_and_padding() -> None:
    table = usual_table(2, S390X)
    cfa = RegisterRule(15, 320, False)
    for ra, fp, words in (
        (RegisterRule(16, 0, False), RegisterRule(17, 0, False), (20, 33, 35)),
        (None, RegisterRule(17, 0, False), (20, 0, 35)),
        (saved_at_cfa(-48), saved_at_cfa(-72), (20, -48, -72)),
        (RegisterRule(14, 0, False), None, (20, 29)),
        (None, None, (20,)),
    ):
        rule = UnwindRule(cfa, ra, fp)
        assert row(table, 0, rule).words == words
        assert decoded(table, rule, FdeType.DEFAULT) == rule


def test_a_function_is_flexible_only_where_it_must_be() -> None:
    plain = UnwindRule(RegisterRule(7, 8, False), RA, None)
    realigned = UnwindRule(RegisterRule(10, 0, False), RA, None)
    assert function(usual_table(3, AMD64), 0x1000, 16, [(0, plain)]).fde_type is FdeType.DEFAULT
    made = function(usual_table(3, AMD64), 0x1000, 16, [(0, plain), (5, realigned)])
    assert made.fde_type is FdeType.FLEX
    assert made.rows == ((0, 0x04, (0x39, 8)), (5, 0x04, (0x51, 0)))
    with pytest.raises(EncodeError) as caught:
        function(usual_table(2, AMD64), 0x1000, 16, [(0, plain), (5, realigned)])
    expected = "row at 0x5: default row of amd64, version 2: CFA r10+0, expected SP or FP plus an offset"
    assert str(caught.value) == f"function at 0x1000: {expected}"


def test_a_function_that_no_row_can_say() -> None:
    rule = UnwindRule(RegisterRule(7, 8, False), RegisterRule(CFA, -8, False), None)
    with pytest.raises(EncodeError) as caught:
        function(usual_table(3, AMD64), 0x1000, 16, [(0, rule)])
    assert "default row of amd64" in str(caught.value)
    assert "flexible row of amd64" in str(caught.value)


@pytest.mark.parametrize(
    ("version", "abi", "rule", "message"),
    [
        (2, AMD64, UnwindRule(RegisterRule(7, 8, True), RA, None), "CFA [rsp+8], expected SP or FP plus an offset"),
        (2, AMD64, UnwindRule(RegisterRule(CFA, 8, False), RA, None), "CFA CFA+8, expected SP or FP plus an offset"),
        (2, AMD64, UnwindRule(RegisterRule(7, 8, False), saved_at_cfa(-16), None), "RA [CFA-16], expected [CFA-8]"),
        (2, AMD64, UnwindRule(RegisterRule(7, 8, False), None, None), "RA not saved, expected [CFA-8]"),
        (
            2,
            AMD64,
            UnwindRule(RegisterRule(7, 8, False), RA, saved_at_cfa(0)),
            "FP [CFA+0], expected saved at the CFA plus an offset other than 0",
        ),
        (
            2,
            AMD64,
            UnwindRule(RegisterRule(7, 8, False), RA, RegisterRule(3, 0, False)),
            "FP rbx+0, expected saved at the CFA plus an offset other than 0",
        ),
        (
            2,
            AMD64,
            UnwindRule(RegisterRule(7, 8, False), RA, None, True),
            "signed return address, which only AArch64 has",
        ),
        (
            3,
            S390X,
            UnwindRule(RegisterRule(15, 160, False), None, None, True),
            "signed return address, which only AArch64 has",
        ),
        (
            2,
            AMD64,
            UnwindRule(None, RA, None),
            "the return address is undefined, expected no other register rule",
        ),
        (
            2,
            AARCH64,
            UnwindRule(None, None, None, True),
            "the return address is undefined, expected no other register rule",
        ),
        (
            2,
            AMD64,
            UnwindRule(RegisterRule(7, 1 << 31, False), RA, None),
            f"data words {1 << 31} do not fit in 4 bytes each",
        ),
        (
            2,
            AARCH64,
            UnwindRule(RegisterRule(31, 16, False), None, saved_at_cfa(-16)),
            "RA not saved, expected saved at the CFA plus an offset other than 0",
        ),
        (
            3,
            AARCH64,
            UnwindRule(RegisterRule(31, 16, False), RegisterRule(17, 0, False), None),
            "RA x17+0, expected saved at the CFA plus an offset other than 0",
        ),
        (
            2,
            S390X,
            UnwindRule(RegisterRule(15, 164, False), None, None),
            "CFA offset 164, expected 160 plus a multiple of 8",
        ),
        (
            2,
            S390X,
            UnwindRule(RegisterRule(15, 160, False), saved_at_cfa(-47), None),
            "RA [CFA-47], expected an even offset",
        ),
        (
            3,
            S390X,
            UnwindRule(RegisterRule(15, 160, False), RegisterRule(16, 0, False), None),
            "RA f0+0, expected saved at the CFA plus an offset other than 0",
        ),
        (
            2,
            S390X,
            UnwindRule(RegisterRule(15, 160, False), RegisterRule(16, 8, False), None),
            "RA f0+8, expected saved at the CFA plus an offset other than 0",
        ),
    ],
)
def test_what_default_rows_cannot_say(version: int, abi: AbiNumber, rule: UnwindRule, message: str) -> None:
    with pytest.raises(EncodeError) as caught:
        row(usual_table(version, abi), 0x20, rule)
    assert str(caught.value) == f"row at 0x20: default row of {ARCH_BY_ABI[abi].name}, version {version}: {message}"


@pytest.mark.parametrize(
    ("version", "abi", "rule", "message"),
    [
        (2, AMD64, UnwindRule(RegisterRule(7, 8, False), RA, None), "flexible rows exist from version 3"),
        (
            3,
            AMD64,
            UnwindRule(RegisterRule(CFA, 8, False), RA, None),
            "CFA based on the CFA itself, expected a register",
        ),
        (
            3,
            AMD64,
            UnwindRule(RegisterRule(7, 8, False), None, None),
            "RA not saved, but the header says that it is always at CFA-8",
        ),
        (
            3,
            AMD64,
            UnwindRule(RegisterRule(7, 8, False), RA, RegisterRule(CFA, -16, False)),
            "FP CFA-16, whose control word would be 0, which stands for not tracked",
        ),
        (
            3,
            AMD64,
            UnwindRule(RegisterRule(1 << 29, 8, False), RA, None),
            f"data words {(1 << 32) + 1}, 8 do not fit in 4 bytes each",
        ),
        (
            3,
            S390X,
            UnwindRule(RegisterRule(11, 150, True), None, None),
            "CFA offset 150, expected 160 plus a multiple of 8",
        ),
        (
            3,
            AMD64,
            UnwindRule(RegisterRule(7, 8, False), RA, None, True),
            "signed return address, which only AArch64 has",
        ),
    ],
)
def test_what_flexible_rows_cannot_say(version: int, abi: AbiNumber, rule: UnwindRule, message: str) -> None:
    with pytest.raises(EncodeError) as caught:
        row(usual_table(version, abi), 0x20, rule, FdeType.FLEX)
    assert str(caught.value) == f"row at 0x20: flexible row of {ARCH_BY_ABI[abi].name}, version {version}: {message}"


def test_a_default_row_needs_the_fixed_offset_of_amd64() -> None:
    with pytest.raises(EncodeError, match="header without a fixed return address offset, expected -8"):
        row(usual_table(2, AMD64)._replace(fixed_ra_offset=0), 0, UnwindRule(RegisterRule(7, 8, False), None, None))
