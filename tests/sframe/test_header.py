"""The header: annotated bytes of each version and byte order, and malformed headers."""

from __future__ import annotations

from typing import Any

import pytest

from sframe_unwind.errors import FormatError, UnsupportedError
from sframe_unwind.sframe import header
from sframe_unwind.sframe.constants import AbiNumber, Flag
from sframe_unwind.sframe.header import Header
from tests.sframe.headers import empty_header
from tests.sframe.literal import literal

AMD64_V1 = literal("""
    e2 de        # magic, little-endian
    01           # version
    01           # flags: FDE_SORTED
    03           # ABI: AMD64
    00           # fixed FP offset: none
    f8           # fixed RA offset: -8
    00           # length of the auxiliary header
    02 00 00 00  # FDEs
    05 00 00 00  # FREs
    10 00 00 00  # length of the FRE sub-section
    00 00 00 00  # offset of the FDE sub-section
    22 00 00 00  # offset of the FRE sub-section: after 2 FDEs of 17 bytes
""")

AARCH64_BE_V2 = literal("""
    de e2        # magic, big-endian
    02           # version
    07           # flags: FDE_SORTED, FRAME_POINTER, FDE_FUNC_START_PCREL
    01           # ABI: AArch64, big-endian
    f0           # fixed FP offset: -16
    08           # fixed RA offset: 8
    04           # length of the auxiliary header
    00 00 00 02  # FDEs
    00 00 00 05  # FREs
    00 00 00 10  # length of the FRE sub-section
    00 00 00 04  # offset of the FDE sub-section
    00 00 00 30  # offset of the FRE sub-section
""")

AARCH64_V3 = literal("""
    e2 de 03     # magic, little-endian, version
    05           # flags: FDE_SORTED, FDE_FUNC_START_PCREL
    02 00 00 00  # ABI: AArch64, no fixed offsets, no auxiliary header
    00 00 00 00 00 00 00 00 00 00 00 00  # no FDEs, no FREs, no FRE sub-section
    00 00 00 00 00 00 00 00              # offsets of the sub-sections
""")

S390X_V2 = literal("""
    de e2 02     # magic, big-endian, version
    04           # flags: FDE_FUNC_START_PCREL
    04 00 00 00  # ABI: s390x, no fixed offsets, no auxiliary header
    00 00 00 00 00 00 00 00 00 00 00 00  # no FDEs, no FREs, no FRE sub-section
    00 00 00 00 00 00 00 00              # offsets of the sub-sections
""")

EMPTY = empty_header(AbiNumber.AARCH64_ENDIAN_LITTLE, 3)._replace(flags=Flag(5))
"""A header without functions."""

EXPECTED = {
    AMD64_V1: Header(
        byteorder="little",
        version=1,
        flags=Flag.FDE_SORTED,
        abi=AbiNumber.AMD64_ENDIAN_LITTLE,
        fixed_fp_offset=0,
        fixed_ra_offset=-8,
        aux_size=0,
        num_fdes=2,
        num_fres=5,
        fre_size=16,
        fde_offset=0,
        fre_offset=34,
    ),
    AARCH64_BE_V2: Header(
        byteorder="big",
        version=2,
        flags=Flag(7),
        abi=AbiNumber.AARCH64_ENDIAN_BIG,
        fixed_fp_offset=-16,
        fixed_ra_offset=8,
        aux_size=4,
        num_fdes=2,
        num_fres=5,
        fre_size=16,
        fde_offset=4,
        fre_offset=48,
    ),
    AARCH64_V3: EMPTY,
    S390X_V2: EMPTY._replace(byteorder="big", version=2, flags=Flag(4), abi=AbiNumber.S390X_ENDIAN_BIG),
}


@pytest.mark.parametrize("content", EXPECTED, ids=["amd64-v1", "aarch64_be-v2", "aarch64-v3", "s390x-v2"])
def test_item_09_both_byte_orders(content: bytes) -> None:
    """Every field is decoded, and encoded to the same bytes."""
    decoded = header.decode(content)
    assert decoded == EXPECTED[content]
    assert header.encode(decoded) == content


def test_places_count_from_the_headers_start() -> None:
    decoded = header.decode(AMD64_V1)
    assert (decoded.fdes_start, decoded.fdes_end) == (28, 28 + 2 * 17)
    assert (decoded.fres_start, decoded.fres_end) == (62, 62 + 16)
    assert decoded.total_size == 78


def test_item_05_places_count_from_the_end_of_the_auxiliary_header() -> None:
    decoded = header.decode(AARCH64_BE_V2)
    assert (decoded.fdes_start, decoded.fdes_end) == (28 + 4 + 4, 28 + 4 + 4 + 2 * 20)
    assert (decoded.fres_start, decoded.fres_end) == (28 + 4 + 48, 28 + 4 + 48 + 16)


def test_decodes_where_it_is_told() -> None:
    assert header.decode(b"12345" + AMD64_V1, 5) == EXPECTED[AMD64_V1]


def patched(content: bytes, offset: int, value: int) -> bytes:
    return content[:offset] + bytes([value]) + content[offset + 1 :]


@pytest.mark.parametrize(
    ("content", "offset", "value", "message"),
    [
        (AMD64_V1, 2, 0, "unknown SFrame version 0, expected 1, 2 or 3 (.sframe offset 0x2)"),
        (AMD64_V1, 2, 4, "unknown SFrame version 4, expected 1, 2 or 3 (.sframe offset 0x2)"),
        (AMD64_V1, 3, 0x05, "unknown flag bits 0x4 in flags 0x5 of version 1 (.sframe offset 0x3)"),
        (S390X_V2, 3, 0x88, "unknown flag bits 0x88 in flags 0x88 of version 2 (.sframe offset 0x3)"),
        (AARCH64_V3, 3, 0x02, "unknown flag bits 0x2 in flags 0x2 of version 3 (.sframe offset 0x3)"),
        (AMD64_V1, 4, 0, "unknown ABI 0, expected 1 to 4 (.sframe offset 0x4)"),
        (AMD64_V1, 4, 5, "unknown ABI 5, expected 1 to 4 (.sframe offset 0x4)"),
    ],
)
def test_item_06_what_is_not_known_is_named(content: bytes, offset: int, value: int, message: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        header.decode(patched(content, offset, value))
    assert str(caught.value) == message
    assert caught.value.offset == offset


@pytest.mark.parametrize(
    ("content", "abi", "message"),
    [
        (AMD64_V1, 1, "ABI 1 (AARCH64_ENDIAN_BIG) in little-endian data (.sframe offset 0x4)"),
        (AMD64_V1, 4, "ABI 4 (S390X_ENDIAN_BIG) in little-endian data (.sframe offset 0x4)"),
        (S390X_V2, 2, "ABI 2 (AARCH64_ENDIAN_LITTLE) in big-endian data (.sframe offset 0x4)"),
        (S390X_V2, 3, "ABI 3 (AMD64_ENDIAN_LITTLE) in big-endian data (.sframe offset 0x4)"),
    ],
)
def test_item_06_abi_against_byte_order(content: bytes, abi: int, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        header.decode(patched(content, 4, abi))
    assert str(caught.value) == message


@pytest.mark.parametrize("size", range(28))
def test_a_short_header_says_how_much_is_left(size: int) -> None:
    with pytest.raises(FormatError) as caught:
        header.decode(b"12" + AMD64_V1[:size], 2)
    expected = f"SFrame header needs 28 bytes, the section has {size} left (.sframe offset 0x2)"
    assert str(caught.value) == expected


def test_wrong_magic_number() -> None:
    with pytest.raises(FormatError) as caught:
        header.decode(b"ABC" + b"\x7fELF" + bytes(40), 3)
    expected = "no SFrame header: expected magic number 0xdee2, found bytes 7f45 (.sframe offset 0x3)"
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    ("changed", "what", "field"),
    [
        ("num_fdes=3", "FDE sub-section runs from 0x1c to 0x4f", 20),
        ("num_fdes=0xffffffff", "FDE sub-section runs from 0x1c to 0x110000000b", 20),
        ("fde_offset=0xffffffff", "FDE sub-section runs from 0x10000001b to 0x10000003d", 20),
        ("aux_size=255", "FDE sub-section runs from 0x11b to 0x13d", 20),
        ("fre_size=17", "FRE sub-section runs from 0x3e to 0x4f", 24),
        ("fre_offset=0xffffffff", "FRE sub-section runs from 0x10000001b to 0x10000002b", 24),
    ],
)
def test_item_07_tables_outside_the_section(changed: str, what: str, field: int) -> None:
    name, _, value = changed.partition("=")
    fields: dict[str, Any] = {name: int(value, 0)}
    with pytest.raises(FormatError) as caught:
        header.check_extent(EXPECTED[AMD64_V1]._replace(**fields), 78)
    assert str(caught.value) == f"{what}, beyond the section's end at 0x4e (.sframe offset {field:#x})"


def test_item_07_tables_that_just_fit() -> None:
    decoded = EXPECTED[AMD64_V1]
    header.check_extent(decoded, 78)
    header.check_extent(decoded, 178, 100)
    with pytest.raises(FormatError, match=r"runs from 0xa2 to 0xb2, beyond the section's end at 0xb1"):
        header.check_extent(decoded, 177, 100)
