"""The meaning of data words of default rows by ABI and version, and the facts about registers in `arch`."""

from __future__ import annotations

import pytest

from sframe_unwind.arch import BY_NAME
from sframe_unwind.errors import FormatError
from sframe_unwind.sframe.constants import ARCH_BY_ABI, AbiNumber, FdeType
from sframe_unwind.sframe.rules import RuleTable
from sframe_unwind.unwind_rule import OUTERMOST, RegisterRule, UnwindRule, saved_at_cfa
from tests.sframe.headers import empty_header
from tests.sframe.literal import literal

AMD64 = AbiNumber.AMD64_ENDIAN_LITTLE
AARCH64 = AbiNumber.AARCH64_ENDIAN_LITTLE
AARCH64_BE = AbiNumber.AARCH64_ENDIAN_BIG
S390X = AbiNumber.S390X_ENDIAN_BIG


def rule(abi: AbiNumber, row: str, version: int = 2, ra: int | None = None, fp: int = 0) -> UnwindRule:
    """Return the rule of a default row, given as hexadecimal digits from its info byte on."""
    fixed_ra = ra if ra is not None else -8 if abi is AMD64 else 0
    head = empty_header(abi, version)._replace(fixed_fp_offset=fp, fixed_ra_offset=fixed_ra)
    return RuleTable(head, FdeType.DEFAULT)[literal(row)]


SP, FP = 7, 6


@pytest.mark.parametrize("version", [1, 2, 3])
def test_amd64(version: int) -> None:
    """The CFA is computed from SP or FP; RA is at the header's offset; FP is at its saved place, if it was saved."""
    ra = saved_at_cfa(-8)
    assert rule(AMD64, "03 08", version) == UnwindRule(RegisterRule(SP, 8, False), ra, None)
    assert rule(AMD64, "04 10 f0", version) == UnwindRule(RegisterRule(FP, 16, False), ra, saved_at_cfa(-16))
    assert rule(AMD64, "23 00 01", version) == UnwindRule(RegisterRule(SP, 256, False), ra, None)
    assert rule(AMD64, "43 00 00 01 00", version) == UnwindRule(RegisterRule(SP, 65536, False), ra, None)


def test_amd64_with_another_fixed_offset() -> None:
    assert rule(AMD64, "03 08", ra=-16, fp=-24) == UnwindRule(
        RegisterRule(SP, 8, False), saved_at_cfa(-16), saved_at_cfa(-24)
    )
    assert rule(AMD64, "05 10 f0", fp=-24).fp == saved_at_cfa(-16)


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("abi", [AARCH64, AARCH64_BE])
def test_aarch64(abi: AbiNumber, version: int) -> None:
    """RA and FP are in their registers until a row has a place for them."""
    assert rule(abi, "03 00", version) == UnwindRule(RegisterRule(31, 0, False), None, None)
    assert rule(abi, "05 20 e8", version) == UnwindRule(RegisterRule(31, 32, False), saved_at_cfa(-24), None)
    assert rule(abi, "06 20 e8 e0", version) == UnwindRule(
        RegisterRule(29, 32, False), saved_at_cfa(-24), saved_at_cfa(-32)
    )


@pytest.mark.parametrize("abi", [AARCH64, AARCH64_BE])
def test_item_20_the_info_byte_says_that_the_return_address_is_signed(abi: AbiNumber) -> None:
    assert rule(abi, "87 20 e8 e0").ra_signed
    assert not rule(abi, "07 20 e8 e0").ra_signed
    assert rule(abi, "83 00") == UnwindRule(RegisterRule(31, 0, False), None, None, True)


def test_item_09_wide_words_in_both_byte_orders() -> None:
    assert rule(AARCH64, "27 00 01 f8 ff f0 ff") == rule(AARCH64_BE, "27 01 00 ff f8 ff f0")
    assert rule(AARCH64_BE, "27 01 00 ff f8 ff f0").cfa == RegisterRule(31, 256, False)


@pytest.mark.parametrize("version", [2, 3])
def test_item_19_s390x_scales_the_cfa_offset(version: int) -> None:
    assert rule(S390X, "03 00", version) == UnwindRule(RegisterRule(15, 160, False), None, None)
    assert rule(S390X, "02 14", version).cfa == RegisterRule(11, 320, False)
    assert rule(S390X, "03 ff", version).cfa == RegisterRule(15, 152, False)
    assert rule(S390X, "23 04 00", version).cfa == RegisterRule(15, 160 + 8 * 1024, False)


@pytest.mark.parametrize("version", [2, 3])
def test_item_19_s390x_pads_where_the_return_address_is_not_saved(version: int) -> None:
    assert rule(S390X, "05 00 d0", version) == UnwindRule(RegisterRule(15, 160, False), saved_at_cfa(-48), None)
    assert rule(S390X, "07 00 d0 b8", version) == UnwindRule(
        RegisterRule(15, 160, False), saved_at_cfa(-48), saved_at_cfa(-72)
    )
    assert rule(S390X, "07 00 00 b8", version) == UnwindRule(RegisterRule(15, 160, False), None, saved_at_cfa(-72))


def test_item_19_s390x_version_2_has_register_numbers() -> None:
    """16 and 17 are the floating-point registers f0 and f2, where leaf functions keep r14 and r11."""
    assert rule(S390X, "05 00 21").ra == RegisterRule(16, 0, False)
    assert rule(S390X, "07 00 21 23") == UnwindRule(
        RegisterRule(15, 160, False), RegisterRule(16, 0, False), RegisterRule(17, 0, False)
    )
    assert rule(S390X, "07 00 00 23") == UnwindRule(RegisterRule(15, 160, False), None, RegisterRule(17, 0, False))
    assert rule(S390X, "05 00 01").ra == RegisterRule(0, 0, False)


def test_item_19_s390x_register_numbers_elsewhere() -> None:
    with pytest.raises(FormatError, match=r"odd offset 33, but version 3 has no registers there"):
        rule(S390X, "05 00 21", version=3)
    with pytest.raises(FormatError, match=r"negative register number -1"):
        rule(S390X, "05 00 ff")


@pytest.mark.parametrize("abi", list(AbiNumber))
@pytest.mark.parametrize("info", ["00", "01", "20", "80"])
def test_item_14_no_data_words_is_the_outermost_frame(abi: AbiNumber, info: str) -> None:
    found = rule(abi, info)
    assert found == OUTERMOST
    assert found.ra_undefined


@pytest.mark.parametrize(
    ("abi", "row", "message"),
    [
        (AMD64, "07 08 f0 e0", "AMD64 row with 3 data words, expected 1 or 2"),
        (AARCH64, "09 08 f0 e0 d0", "AArch64 row with 4 data words, expected 1 to 3"),
        (AARCH64_BE, "09 08 f0 e0 d0", "AArch64 row with 4 data words, expected 1 to 3"),
        (S390X, "09 08 f0 e0 d0", "s390x row with 4 data words, expected 1 to 3"),
    ],
)
def test_item_17_left_over_words_reject_the_row(abi: AbiNumber, row: str, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        rule(abi, row)
    assert str(caught.value) == message


def test_amd64_needs_the_fixed_offset() -> None:
    message = r"without a fixed return address offset, expected -8 \(\.sframe offset 0x6\)"
    with pytest.raises(FormatError, match=message):
        rule(AMD64, "03 08", ra=0)


def test_a_distinct_row_is_one_rule() -> None:
    """Rules are shared: a program has a few dozen, not hundreds of thousands."""
    head = empty_header(AMD64, 2)._replace(fixed_ra_offset=-8)
    table = RuleTable(head, FdeType.DEFAULT)
    assert table[b"\x03\x08"] is table[b"\x03\x08"]


def test_names_and_numbers() -> None:
    assert {abi.name for abi in ARCH_BY_ABI.values()} == {"amd64", "aarch64", "aarch64_be", "s390x"}
    assert BY_NAME["aarch64_be"] is ARCH_BY_ABI[AARCH64_BE]
    for number, (pc, sp, fp, ra) in {
        AMD64: ("rip", "rsp", "rbp", None),
        AARCH64: ("pc", "sp", "x29", "x30"),
        AARCH64_BE: ("pc", "sp", "x29", "x30"),
        S390X: ("pswa", "r15", "r11", "r14"),
    }.items():
        abi = ARCH_BY_ABI[number]
        assert [abi.register_name(register) for register in (abi.pc, abi.sp, abi.fp)] == [pc, sp, fp]
        assert (None if abi.ra is None else abi.register_name(abi.ra)) == ra
    assert ARCH_BY_ABI[AMD64].register_name(10) == "r10"
    assert ARCH_BY_ABI[S390X].register_name(17) == "f2"
    assert ARCH_BY_ABI[AMD64].register_name(99) == "DWARF register 99"


@pytest.mark.parametrize(
    ("address", "mask", "expected"),
    [
        (0x0000_AAAA_BBBB_CCC0, 0xFF7F_0000_0000_0000, 0x0000_AAAA_BBBB_CCC0),
        (0x1234_AAAA_BBBB_CCC0, 0xFF7F_0000_0000_0000, 0x0000_AAAA_BBBB_CCC0),
        (0xFF7F_AAAA_BBBB_CCC0, 0xFF7F_0000_0000_0000, 0x0000_AAAA_BBBB_CCC0),
        # Bit 55: an address of the kernel, whose upper bits are all set.
        (0x1280_0000_BBBB_CCC0, 0xFF7F_0000_0000_0000, 0xFFFF_0000_BBBB_CCC0),
        # A target with addresses of 52 bits signs fewer.
        (0x123F_AAAA_BBBB_CCC0, 0xFF70_0000_0000_0000, 0x000F_AAAA_BBBB_CCC0),
    ],
)
def test_item_20_stripping_a_signed_address(address: int, mask: int, expected: int) -> None:
    assert ARCH_BY_ABI[AARCH64].strip(address, mask) == expected
    assert ARCH_BY_ABI[AARCH64].pac_mask == 0xFF7F_0000_0000_0000


@pytest.mark.parametrize(
    ("abi", "code", "expected"),
    [
        # e8 rel32: call; ff 15: through memory.
        (AMD64, "e8 00 01 00 00", 0x1100),
        (AMD64, "e8 fb ff ff ff", 0x0FFB),
        (AMD64, "90 90 90 ff d0", None),
        # 94000001: bl to the next instruction; 97ffffff: one back; d63f0000: blr x0. Always little-endian.
        (AARCH64, "01 00 00 94", 0x1000),
        (AARCH64, "ff ff ff 97", 0x0FF8),
        (AARCH64_BE, "02 00 00 94", 0x1004),
        (AARCH64, "00 00 3f d6", None),
        # c0e5: brasl %r14 by halfwords from the instruction itself; 0de1: basr.
        (S390X, "c0 e5 00 00 00 10", 0x101A),
        (S390X, "c0 e5 ff ff ff ff", 0x0FF8),
        (S390X, "00 00 00 00 0d e1", None),
    ],
)
def test_where_a_direct_call_goes(abi: AbiNumber, code: str, expected: int | None) -> None:
    assert ARCH_BY_ABI[abi].call_target(literal(code), 0x1000) == expected
    assert len(literal(code)) == ARCH_BY_ABI[abi].call_size
