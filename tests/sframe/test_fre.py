"""Frame row entries: annotated bytes, sizes of addresses and data words, and malformed entries."""

from __future__ import annotations

import pytest

from sframe_unwind.address import ByteOrder
from sframe_unwind.errors import FormatError
from sframe_unwind.sframe import fre
from sframe_unwind.sframe.raw import VERBATIM
from tests.sframe.literal import literal


def decode(
    content: bytes, count: int, address_size: int = 1, byteorder: ByteOrder = "little", offset: int = 0
) -> list[tuple[int, bytes]]:
    starts, rows = fre.decode(
        data=content,
        offset=offset,
        limit=len(content),
        count=count,
        layout=(address_size, byteorder),
        interpret=VERBATIM,
    )
    return list(zip(starts, rows))


ONE_BYTE = literal("""
    00        # start
    03        # info: based on SP, 1 word of 1 byte
    08        # word 1
    fe        # start: addresses are unsigned
    84        # info: based on FP, 2 words of 1 byte, RA signed
    10 f0     # words 1 and 2
    ff        # start
    00        # info: no words
""")
TWO_BYTES_LITTLE = literal("""
    34 12     # start
    25        # info: based on SP, 2 words of 2 bytes
    00 01 f0 ff  # words: 256, -16
""")
TWO_BYTES_BIG = literal("""
    12 34     # start
    25        # info: based on SP, 2 words of 2 bytes
    01 00 ff f0  # words: 256, -16
""")
FOUR_BYTES_LITTLE = literal("""
    78 56 34 12  # start
    46           # info: based on FP, 3 words of 4 bytes
    00 00 01 00 f8 ff ff ff 00 00 00 80  # words: 65536, -8, -2147483648
""")
FOUR_BYTES_BIG = literal("""
    12 34 56 78  # start
    46           # info: based on FP, 3 words of 4 bytes
    00 01 00 00 ff ff ff f8 80 00 00 00  # words: 65536, -8, -2147483648
""")


def test_one_byte_starts_and_words() -> None:
    rows = decode(ONE_BYTE, 3)
    assert rows == [(0, b"\x03\x08"), (0xFE, b"\x84\x10\xf0"), (0xFF, b"\x00")]
    assert [fre.words(row, "little") for _, row in rows] == [(8,), (16, -16), ()]
    assert [fre.base_is_sp(row[0]) for _, row in rows] == [True, False, False]
    assert [fre.ra_signed(row[0]) for _, row in rows] == [False, True, False]


@pytest.mark.parametrize(
    ("byteorder", "content", "address_size", "start", "words"),
    [
        ("little", TWO_BYTES_LITTLE, 2, 0x1234, (256, -16)),
        ("big", TWO_BYTES_BIG, 2, 0x1234, (256, -16)),
        ("little", FOUR_BYTES_LITTLE, 4, 0x12345678, (65536, -8, -(1 << 31))),
        ("big", FOUR_BYTES_BIG, 4, 0x12345678, (65536, -8, -(1 << 31))),
    ],
)
def test_item_09_both_byte_orders(
    byteorder: ByteOrder, content: bytes, address_size: int, start: int, words: tuple[int, ...]
) -> None:
    ((found, row),) = decode(b"abc" + content, 1, address_size, byteorder, 3)
    assert found == start
    assert fre.words(row, byteorder) == words
    assert fre.word_size(row[0]) == address_size


@pytest.mark.parametrize("size_code", range(3))
@pytest.mark.parametrize("count", range(16))
def test_every_number_and_size_of_words(count: int, size_code: int) -> None:
    size = 1 << size_code
    words = tuple((-1) ** number * number for number in range(count))
    raw = b"".join(word.to_bytes(size, "big", signed=True) for word in words)
    for flags in (0, 1, 0x80, 0x81):
        info = flags | count << 1 | size_code << 5
        ((_, row),) = decode(bytes([7, info]) + raw, 1, 1, "big")
        assert fre.words(row, "big") == words
        assert len(row) == 1 + count * size


def test_rows_with_equal_starts_are_in_order() -> None:
    assert decode(literal("05 00  05 00"), 2) == [(5, b"\0"), (5, b"\0")]


@pytest.mark.parametrize(
    ("content", "count", "message"),
    [
        (literal("00 60"), 1, "row 0: info byte 0x60 has the invalid word size 3 (.sframe offset 0x3)"),
        (literal("00 00  04 ff"), 2, "row 1: info byte 0xff has the invalid word size 3 (.sframe offset 0x5)"),
        (literal("00 03"), 1, "row 0: data words end beyond the FRE sub-section's end (.sframe offset 0x2)"),
        (literal("00 03 08  01"), 2, "row 1 of 2 starts beyond the FRE sub-section's end (.sframe offset 0x5)"),
        (literal("00 03 08"), 2, "row 1 of 2 starts beyond the FRE sub-section's end (.sframe offset 0x5)"),
        (literal("08 00  07 00"), 2, "row 1 starts at 0x7, before its predecessor (.sframe offset 0x4)"),
    ],
)
def test_malformed_rows(content: bytes, count: int, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        decode(b"ab" + content, count, offset=2)
    assert str(caught.value) == message


def test_item_07_rows_end_with_their_sub_section_not_with_the_section() -> None:
    with pytest.raises(FormatError, match=r"data words end beyond the FRE sub-section's end"):
        fre.decode(
            data=literal("00 05 08 f0 00 00"), offset=0, limit=3, count=1, layout=(1, "little"), interpret=VERBATIM
        )


def test_item_07_a_huge_number_of_rows_ends_at_the_end_of_the_bytes() -> None:
    with pytest.raises(FormatError, match=r"row 8 of 4294967295 starts beyond"):
        decode(bytes(16), 0xFFFFFFFF)


def test_rows_beyond_the_data() -> None:
    """The limit comes from the header; if the memory ends sooner, that is an error of the format too."""
    with pytest.raises(FormatError, match=r"row 1 of 2 lies beyond the section's end \(\.sframe offset 0x2\)"):
        fre.decode(data=bytes(2), offset=0, limit=10, count=2, layout=(1, "little"), interpret=VERBATIM)
