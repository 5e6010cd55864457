"""Whole sections as annotated bytes: decoding gives the expected contents, and encoding gives the bytes."""

from __future__ import annotations

import pytest

from sframe_unwind.sframe.constants import AbiNumber, FdeType, Flag, PauthKey, PcType
from sframe_unwind.sframe.encode import FunctionSpec, RowSpec, SectionSpec, TableSpec, describe, encode
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import Match
from sframe_unwind.unwind_rule import OUTERMOST, RegisterRule, UnwindRule, saved_at_cfa
from tests.sframe.literal import literal

ADDRESS = 0x2000

AMD64_V1 = literal("""
    e2 de 01 01 03 00 f8 00                # magic, version 1, sorted, AMD64, RA at CFA-8
    02 00 00 00 05 00 00 00 0e 00 00 00    # 2 FDEs, 5 FREs in 14 bytes
    00 00 00 00 22 00 00 00                # FDEs at 0, FREs after 2 * 17 bytes
    00 f0 ff ff 10 00 00 00                # start: section - 0x1000, size 16
    00 00 00 00 03 00 00 00 00             # rows at 0, 3 of them, addresses of 1 byte
    20 f0 ff ff 30 00 00 00                # start: section - 0xfe0, size 48
    0a 00 00 00 02 00 00 00 10             # rows at 10, 2 of them, mask
    00 03 08                               # CFA sp+8
    01 05 10 f0                            # CFA sp+16, FP at CFA-16
    0f 03 08                               # CFA sp+8
    00 00                                  # RA undefined
    0b 00                                  # RA undefined
""")

AARCH64_BE_V2 = literal("""
    de e2 02 04 01 00 00 02                # magic, version 2, starts relative to themselves, AArch64 big-endian
    00 00 00 01 00 00 00 02 00 00 00 0d    # 1 FDE, 2 FREs in 13 bytes
    00 00 00 00 00 00 00 14                # FDEs at 0, FREs after them
    a1 a2                                  # the auxiliary header
    ff ff ef e2 00 00 01 50                # start: its own place 0x201e - 0x101e, size 336
    00 00 00 00 00 00 00 02 21             # rows at 0, 2 of them, key B, addresses of 2 bytes
    00 00 00                               # no repetition, padding
    00 00 03 00                            # CFA sp+0
    01 04 a7 01 00 ff f0 ff f8             # RA signed, 3 words of 2 bytes: CFA sp+256, RA at CFA-16, FP at CFA-8
""")

S390X_V2 = literal("""
    de e2 02 05 04 00 00 00                # magic, version 2, sorted, starts relative to themselves, s390x
    00 00 00 01 00 00 00 02 00 00 00 08    # 1 FDE, 2 FREs in 8 bytes
    00 00 00 00 00 00 00 14                # FDEs at 0, FREs after them
    00 00 10 00 00 00 00 20                # start: its own place + 0x1000, size 32
    00 00 00 00 00 00 00 02 00 00 00 00    # rows at 0, 2 of them
    00 03 00                               # CFA sp+0*8+160
    04 07 14 21 b8                         # CFA sp+20*8+160, RA in register 16, FP at CFA-72
""")

AMD64_V3 = literal("""
    e2 de 03 05 03 00 f8 00                # magic, version 3, sorted, starts relative to themselves, AMD64
    02 00 00 00 03 00 00 00 1b 00 00 00    # 2 FDEs, 3 FREs in 27 bytes
    00 00 00 00 20 00 00 00                # FDEs at 0, FREs after 2 * 16 bytes
    e4 ff ff ff ff ff ff ff 20 00 00 00    # start: its own place 0x201c - 0x1c, size 32
    07 00 00 00                            # attributes at 7
    d4 ff ff ff ff 00 00 00 20 00 00 00    # start: its own place 0x202c + (1 << 40) - 0x2c, size 32
    00 00 00 00                            # attributes at 0
    01 00 80 00 00                         # 1 row, signal frame
    00 00                                  # RA undefined
    02 00 00 01 00                         # 2 rows, flexible
    00 04 39 08                            # CFA rsp+8
    05 0a 51 00 00 33 00                   # CFA r10+0, RA where it always is, FP in memory at rbp+0
    00 00 00 00                            # (not used)
""")

SECTIONS: dict[str, tuple[bytes, TableSpec, dict[int, UnwindRule | None]]] = {
    "amd64-v1": (
        AMD64_V1,
        TableSpec(
            1,
            AbiNumber.AMD64_ENDIAN_LITTLE,
            Flag.FDE_SORTED,
            fixed_ra_offset=-8,
            functions=(
                FunctionSpec(
                    0x1000, 16, (RowSpec(0, 3, (8,)), RowSpec(1, 5, (16, -16)), RowSpec(15, 3, (8,))), 1, rows_at=0
                ),
                FunctionSpec(
                    start=0x1020,
                    size=48,
                    rows=(RowSpec(0, 0), RowSpec(11, 0)),
                    address_size=1,
                    pc_type=PcType.MASK,
                    repetition_size=16,
                    rows_at=10,
                ),
            ),
            offset=0,
            fre_offset=34,
            fre_size=14,
        ),
        {
            0x1000: UnwindRule(RegisterRule(7, 8, False), saved_at_cfa(-8), None),
            0x1001: UnwindRule(RegisterRule(7, 16, False), saved_at_cfa(-8), saved_at_cfa(-16)),
            0x100F: UnwindRule(RegisterRule(7, 8, False), saved_at_cfa(-8), None),
            0x103A: OUTERMOST,
            0x1050: None,
        },
    ),
    "aarch64_be-v2": (
        AARCH64_BE_V2,
        TableSpec(
            2,
            AbiNumber.AARCH64_ENDIAN_BIG,
            Flag.FDE_FUNC_START_PCREL,
            aux_header=b"\xa1\xa2",
            functions=(
                FunctionSpec(
                    0x1000,
                    336,
                    (RowSpec(0, 3, (0,)), RowSpec(0x104, 0xA7, (256, -16, -8))),
                    2,
                    pauth_key=PauthKey.B,
                    rows_at=0,
                ),
            ),
            offset=0,
            fre_offset=20,
            fre_size=13,
        ),
        {
            0x1103: UnwindRule(RegisterRule(31, 0, False), None, None),
            0x1104: UnwindRule(RegisterRule(31, 256, False), saved_at_cfa(-16), saved_at_cfa(-8), True),
        },
    ),
    "s390x-v2": (
        S390X_V2,
        TableSpec(
            2,
            AbiNumber.S390X_ENDIAN_BIG,
            Flag.FDE_SORTED | Flag.FDE_FUNC_START_PCREL,
            functions=(FunctionSpec(0x301C, 32, (RowSpec(0, 3, (0,)), RowSpec(4, 7, (20, 33, -72))), 1, rows_at=0),),
            offset=0,
            fre_offset=20,
            fre_size=8,
        ),
        {
            0x301F: UnwindRule(RegisterRule(15, 160, False), None, None),
            0x3020: UnwindRule(RegisterRule(15, 320, False), RegisterRule(16, 0, False), saved_at_cfa(-72)),
        },
    ),
    "amd64-v3": (
        AMD64_V3,
        TableSpec(
            3,
            AbiNumber.AMD64_ENDIAN_LITTLE,
            Flag.FDE_SORTED | Flag.FDE_FUNC_START_PCREL,
            fixed_ra_offset=-8,
            functions=(
                FunctionSpec(
                    0x2000,
                    32,
                    (RowSpec(0, 4, (0x39, 8)), RowSpec(5, 10, (0x51, 0, 0, 0x33, 0))),
                    1,
                    fde_type=FdeType.FLEX,
                    rows_at=7,
                ),
                FunctionSpec((1 << 40) + 0x2000, 32, (RowSpec(0, 0),), 1, signal=True, rows_at=0),
            ),
            offset=0,
            fre_offset=32,
            fre_size=27,
        ),
        {
            0x2004: UnwindRule(RegisterRule(7, 8, False), saved_at_cfa(-8), None),
            0x2005: UnwindRule(RegisterRule(10, 0, False), saved_at_cfa(-8), RegisterRule(6, 0, True)),
            (1 << 40) + 0x2000: OUTERMOST,
            (1 << 40) + 0x1FFF: None,
        },
    ),
}


@pytest.mark.parametrize("name", SECTIONS)
def test_item_09_a_section_decodes_to_what_it_says(name: str) -> None:
    content, expected, _ = SECTIONS[name]
    assert describe(Section(content, ADDRESS)) == SectionSpec(ADDRESS, (expected,), len(content))


@pytest.mark.parametrize("name", SECTIONS)
def test_item_09_what_it_says_encodes_to_the_section(name: str) -> None:
    content, described, _ = SECTIONS[name]
    assert encode(SectionSpec(ADDRESS, (described,))) == content


@pytest.mark.parametrize("name", SECTIONS)
def test_item_09_lookup(name: str) -> None:
    content, _, answers = SECTIONS[name]
    section = Section(content, ADDRESS)
    for pc, expected in answers.items():
        match = section.lookup(pc)
        assert (match.rule if isinstance(match, Match) else None) == expected, hex(pc)
