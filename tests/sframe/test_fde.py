"""Function descriptor entries: annotated bytes of each version and byte order, and malformed ones."""

from __future__ import annotations

import pytest

from sframe_unwind.address import ByteOrder
from sframe_unwind.errors import FormatError, UnsupportedError
from sframe_unwind.sframe import fde, header
from sframe_unwind.sframe.constants import AbiNumber, FdeType, PauthKey, PcType
from sframe_unwind.sframe.fde import Fde
from sframe_unwind.sframe.header import Header
from sframe_unwind.sframe.raw import RawFdes
from tests.sframe.headers import empty_header
from tests.sframe.literal import literal

ABI_OF = {"little": AbiNumber.AARCH64_ENDIAN_LITTLE, "big": AbiNumber.AARCH64_ENDIAN_BIG}


def section(version: int, byteorder: ByteOrder, entries: bytes, rows: bytes, num_fdes: int = 1) -> tuple[bytes, Header]:
    """Return a header followed by these entries and these rows."""
    head = empty_header(ABI_OF[byteorder], version)._replace(
        num_fdes=num_fdes, fre_size=len(rows), fre_offset=len(entries)
    )
    return header.encode(head) + entries + rows, head


def decode(version: int, byteorder: ByteOrder, entries: bytes, rows: bytes, index: int = 0) -> Fde:
    content, head = section(version, byteorder, entries, rows, index + 1)
    return fde.decode(RawFdes(content, 0, head), head, index)


V1_LITTLE = literal("""
    00 f0 ff ff  # start: -0x1000
    34 12 00 00  # size
    02 00 00 00  # offset of the first FRE
    03 00 00 00  # number of FREs
    21           # info: FRE type 1 (2 bytes), increment, key B
""")
V1_BIG = literal("""
    ff ff f0 00  # start: -0x1000
    00 00 12 34  # size
    00 00 00 02  # offset of the first FRE
    00 00 00 03  # number of FREs
    21           # info: FRE type 1 (2 bytes), increment, key B
""")
V2_LITTLE = literal("""
    00 10 00 00  # start: 0x1000
    40 00 00 00  # size
    00 00 00 00  # offset of the first FRE
    02 00 00 00  # number of FREs
    10           # info: FRE type 0 (1 byte), mask, key A
    20           # repetition size
    00 00        # padding
""")
V2_BIG = literal("""
    00 00 10 00  # start: 0x1000
    00 00 00 40  # size
    00 00 00 00  # offset of the first FRE
    00 00 00 02  # number of FREs
    10           # info: FRE type 0 (1 byte), mask, key A
    20           # repetition size
    00 00        # padding
""")
V3_LITTLE = literal("""
    00 00 00 00 00 01 00 00  # start: 1 << 40
    fe ff ff ff              # size
    03 00 00 00              # offset of the attribute record
""")
V3_BIG = literal("""
    00 00 01 00 00 00 00 00  # start: 1 << 40
    ff ff ff fe              # size
    00 00 00 03              # offset of the attribute record
""")
ATTRIBUTES_LITTLE = literal("""
    aa aa aa     # something else
    02 01        # number of FREs
    b2           # info: FRE type 2 (4 bytes), mask, key B, signal
    01           # info2: flexible
    0c           # repetition size
""")
ATTRIBUTES_BIG = literal("""
    aa aa aa     # something else
    01 02        # number of FREs
    b2           # info: FRE type 2 (4 bytes), mask, key B, signal
    01           # info2: flexible
    0c           # repetition size
""")


@pytest.mark.parametrize(
    ("version", "byteorder", "entry", "rows", "expected"),
    [
        (
            1,
            order,
            entry,
            bytes(16),
            Fde(
                start_field=-0x1000,
                size=0x1234,
                rows_offset=2,
                num_rows=3,
                address_size=2,
                pc_type=PcType.INC,
                fde_type=FdeType.DEFAULT,
                pauth_key=PauthKey.B,
                signal=False,
                repetition_size=0,
            ),
        )
        for order, entry in (("little", V1_LITTLE), ("big", V1_BIG))
    ]
    + [
        (
            2,
            order,
            entry,
            bytes(16),
            Fde(
                start_field=0x1000,
                size=0x40,
                rows_offset=0,
                num_rows=2,
                address_size=1,
                pc_type=PcType.MASK,
                fde_type=FdeType.DEFAULT,
                pauth_key=PauthKey.A,
                signal=False,
                repetition_size=32,
            ),
        )
        for order, entry in (("little", V2_LITTLE), ("big", V2_BIG))
    ]
    + [
        (
            3,
            order,
            entry,
            rows,
            Fde(
                start_field=1 << 40,
                size=0xFFFFFFFE,
                rows_offset=8,
                num_rows=0x102,
                address_size=4,
                pc_type=PcType.MASK,
                fde_type=FdeType.FLEX,
                pauth_key=PauthKey.B,
                signal=True,
                repetition_size=12,
            ),
        )
        for order, entry, rows in (("little", V3_LITTLE, ATTRIBUTES_LITTLE), ("big", V3_BIG, ATTRIBUTES_BIG))
    ],
    ids=["v1-little", "v1-big", "v2-little", "v2-big", "v3-little", "v3-big"],
)
def test_item_09_both_byte_orders(version: int, byteorder: ByteOrder, entry: bytes, rows: bytes, expected: Fde) -> None:
    """Every field is decoded; the second entry comes directly after the first."""
    assert decode(version, byteorder, entry, rows) == expected
    assert decode(version, byteorder, bytes(len(entry)) + entry, rows, 1) == expected


@pytest.mark.parametrize(
    ("version", "entry", "expected"),
    [
        (1, literal("00 00 00 80") + bytes(13), -(1 << 31)),
        (1, literal("ff ff ff 7f") + bytes(13), (1 << 31) - 1),
        (2, literal("00 00 00 80") + bytes(16), -(1 << 31)),
        (2, literal("ff ff ff 7f") + bytes(16), (1 << 31) - 1),
        (3, literal("00 00 00 00 00 00 00 80") + bytes(8), -(1 << 63)),
        (3, literal("ff ff ff ff ff ff ff 7f") + bytes(8), (1 << 63) - 1),
    ],
)
def test_item_08_start_fields_are_signed_and_wider_in_version_3(version: int, entry: bytes, expected: int) -> None:
    assert decode(version, "little", entry, bytes(5)).start_field == expected


def test_version_1_has_no_repetition_size_but_that_of_a_plt_entry() -> None:
    assert decode(1, "little", bytes(16) + literal("10"), b"").repetition_size == 16


def test_bit_7_marks_a_signal_frame_in_version_3_only() -> None:
    assert decode(3, "little", bytes(16), literal("00 00 80 00 00")).signal
    assert not decode(3, "little", bytes(16), literal("00 00 00 00 00")).signal
    assert not decode(2, "little", bytes(16) + literal("80 00 00 00"), b"").signal
    assert not decode(1, "little", bytes(16) + literal("80"), b"").signal


@pytest.mark.parametrize(
    ("version", "entries", "rows", "message"),
    [
        (2, bytes(16) + literal("10 00 00 00"), b"", "FDE 0: repetition size 0 in a mask FDE (.sframe offset 0x1c)"),
        (3, bytes(16), literal("00 00 10 00 00"), "FDE 0: repetition size 0 in a mask FDE (.sframe offset 0x1c)"),
    ],
)
def test_item_11_repetition_size_0_is_rejected(version: int, entries: bytes, rows: bytes, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        decode(version, "little", entries, rows)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("version", "entries", "rows", "message"),
    [
        (1, bytes(16) + literal("03"), b"", "FDE 0: unknown FRE type 3, expected 0 to 2 (.sframe offset 0x2c)"),
        (2, bytes(16) + b"\x0f\0\0\0", b"", "FDE 0: unknown FRE type 15, expected 0 to 2 (.sframe offset 0x2c)"),
        (3, bytes(16), literal("00 00 04 00 00"), "FDE 0: unknown FRE type 4, expected 0 to 2 (.sframe offset 0x2e)"),
        (3, bytes(16), literal("00 00 00 02 00"), "FDE 0: unknown FDE type 2, expected 0 or 1 (.sframe offset 0x2f)"),
        (3, bytes(16), literal("00 00 00 1f 00"), "FDE 0: unknown FDE type 31, expected 0 or 1 (.sframe offset 0x2f)"),
    ],
)
def test_item_06_unknown_types_are_named(version: int, entries: bytes, rows: bytes, message: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        decode(version, "little", entries, rows)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("version", "entries", "rows", "message"),
    [
        (
            1,
            bytes(8) + literal("04 00 00 00 01 00 00 00 00"),
            bytes(4),
            "FDE 0: first row at 0x4 is outside the FRE sub-section of 0x4 bytes (.sframe offset 0x24)",
        ),
        (
            2,
            bytes(8) + literal("ff ff ff ff 01 00 00 00 00 00 00 00"),
            bytes(4),
            "FDE 0: first row at 0xffffffff is outside the FRE sub-section of 0x4 bytes (.sframe offset 0x24)",
        ),
        (
            3,
            bytes(12) + literal("01 00 00 00"),
            bytes(5),
            "FDE 0: attribute record at 0x1 is outside the FRE sub-section of 0x5 bytes (.sframe offset 0x28)",
        ),
        (
            3,
            bytes(12) + literal("ff ff ff ff"),
            bytes(5),
            "FDE 0: attribute record at 0xffffffff is outside the FRE sub-section of 0x5 bytes (.sframe offset 0x28)",
        ),
    ],
)
def test_item_07_rows_outside_the_sub_section(version: int, entries: bytes, rows: bytes, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        decode(version, "little", entries, rows)
    assert str(caught.value) == message


def test_item_13_without_rows_their_offset_does_not_matter() -> None:
    """GNU as lets the offset point to the end of the sub-section."""
    assert decode(2, "little", bytes(8) + literal("04 00 00 00 00 00 00 00 00 00 00 00"), bytes(4)).num_rows == 0


def test_an_entry_beyond_the_data() -> None:
    content, head = section(2, "little", bytes(20), b"")
    with pytest.raises(FormatError) as caught:
        fde.decode(RawFdes(content[:-1], 0, head), head, 0)
    assert str(caught.value) == "FDE 0 needs 20 bytes, the section has 19 left (.sframe offset 0x1c)"
