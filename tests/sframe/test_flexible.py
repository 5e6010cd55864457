"""Flexible rows: control words, padding, and malformed rows."""

from __future__ import annotations

import pytest

from sframe_unwind.errors import FormatError
from sframe_unwind.sframe.constants import AbiNumber, FdeType, Flag
from sframe_unwind.sframe.rules import RuleTable
from sframe_unwind.unwind_rule import CFA, OUTERMOST, RegisterRule, UnwindRule, saved_at_cfa
from tests.sframe.headers import empty_header
from tests.sframe.literal import literal

AMD64 = AbiNumber.AMD64_ENDIAN_LITTLE
AARCH64 = AbiNumber.AARCH64_ENDIAN_LITTLE
S390X = AbiNumber.S390X_ENDIAN_BIG


def rule(abi: AbiNumber, row: str, fp: int = 0) -> UnwindRule:
    """Return the rule of a flexible row, given as annotated bytes from its info byte on."""
    ra = -8 if abi is AMD64 else 0
    head = empty_header(abi, 3)._replace(flags=Flag(4), fixed_fp_offset=fp, fixed_ra_offset=ra)
    return RuleTable(head, FdeType.FLEX)[literal(row)]


def test_stack_realignment_before_the_frame_is_up() -> None:
    found = rule(
        AMD64,
        """
        04     # info: 2 words of 1 byte
        51 00  # CFA: r10 + 0
    """,
    )
    assert found == UnwindRule(RegisterRule(10, 0, False), saved_at_cfa(-8), None)


def test_stack_realignment_in_the_body() -> None:
    found = rule(
        AMD64,
        """
        0a     # info: 5 words of 1 byte
        33 f8  # CFA: memory at rbp - 8
        00     # RA: not tracked, so it is where the header says
        33 00  # FP: memory at rbp + 0
    """,
    )
    assert found == UnwindRule(RegisterRule(6, -8, True), saved_at_cfa(-8), RegisterRule(6, 0, True))


def test_registers_as_places() -> None:
    found = rule(
        S390X,
        """
        0c     # info: 6 words of 1 byte
        79 02  # CFA: r15 + 2 * 8 + 160
        81 00  # RA: DWARF register 16 (f0)
        89 00  # FP: DWARF register 17 (f2)
    """,
    )
    assert found == UnwindRule(RegisterRule(15, 176, False), RegisterRule(16, 0, False), RegisterRule(17, 0, False))


@pytest.mark.parametrize(
    ("row", "base"),
    [
        ("04 81 08", 16),
        ("04 f9 08", 31),
        ("24 01 01 00 08", 32),
        ("24 00 81 00 08", 16),
        ("44 00 00 80 01 00 00 00 08", 4096),
    ],
)
def test_item_16_control_words_are_unsigned(row: str, base: int) -> None:
    """Register 16 in one byte is 0x81, which would be negative."""
    assert rule(S390X, row).cfa == RegisterRule(base, 224, False)


def test_item_16_the_largest_register_number_of_each_size() -> None:
    for row, bits in (("04 ff 01", 8), ("24 ff ff 00 01", 16), ("44 ff ff ff ff 00 00 00 01", 32)):
        assert rule(S390X, row).cfa == RegisterRule((1 << bits - 3) - 1, 168, True)


def test_item_16_control_word_0_is_one_padding_word() -> None:
    assert rule(AARCH64, "0a f9 10 00 02 f0") == UnwindRule(RegisterRule(31, 16, False), None, saved_at_cfa(-16))
    assert rule(AARCH64, "08 f9 10 00 00") == UnwindRule(RegisterRule(31, 16, False), None, None)
    assert rule(AARCH64, "06 f9 10 00") == UnwindRule(RegisterRule(31, 16, False), None, None)


def test_padding_stands_for_the_fixed_offsets() -> None:
    expected = UnwindRule(RegisterRule(7, 8, False), saved_at_cfa(-8), saved_at_cfa(-16))
    assert rule(AMD64, "04 39 08", fp=-16) == expected
    assert rule(AMD64, "08 39 08 00 00", fp=-16) == expected
    assert rule(AMD64, "0a 39 08 00 02 e8", fp=-16).fp == saved_at_cfa(-24)


def test_return_address_at_another_place_than_the_fixed_one() -> None:
    assert rule(AMD64, "08 39 08 02 e8").ra == saved_at_cfa(-24)
    assert rule(AMD64, "08 39 08 03 e8").ra == RegisterRule(0, -24, True)


def test_register_0_is_a_register() -> None:
    assert rule(AMD64, "04 01 08").cfa == RegisterRule(0, 8, False)


def test_the_base_bit_of_the_info_byte_means_nothing() -> None:
    assert rule(AMD64, "05 51 00") == rule(AMD64, "04 51 00")


def test_item_14_no_data_words_is_the_outermost_frame() -> None:
    assert rule(AMD64, "00") == OUTERMOST


def test_item_20_flexible_rows_can_be_signed() -> None:
    assert rule(AARCH64, "88 f9 10 02 f8") == UnwindRule(RegisterRule(31, 16, False), saved_at_cfa(-8), None, True)


@pytest.mark.parametrize("row", ["02 00", "04 00 08", "04 02 08", "06 00 51 00"])
def test_item_17_the_cfa_cannot_be_based_on_itself(row: str) -> None:
    with pytest.raises(FormatError, match="flexible row whose CFA is based on the CFA itself"):
        rule(AMD64, row)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("02 51", "flexible row ends after control word 0x51, expected its offset"),
        ("06 51 00 02", "flexible row ends after control word 0x2, expected its offset"),
        ("08 51 00 00 33", "flexible row ends after control word 0x33, expected its offset"),
        ("0a 51 00 00 00 00", "flexible row with 1 of 5 data words left over"),
        ("0e 51 00 02 f8 33 00 00", "flexible row with 1 of 7 data words left over"),
        ("10 51 00 02 f8 33 00 33 00", "flexible row with 2 of 8 data words left over"),
    ],
)
def test_item_17_left_over_or_missing_words_reject_the_row(row: str, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        rule(AMD64, row)
    assert str(caught.value) == message


def test_the_cfa_as_a_value() -> None:
    """A value that is the CFA plus an offset, and not read from memory."""
    assert rule(AMD64, "0a 51 00 00 02 f0").fp == RegisterRule(CFA, -16, True)
