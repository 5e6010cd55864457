"""The encoder: layout, and the values that it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from sframe_unwind.errors import EncodeError, FormatError
from sframe_unwind.sframe.constants import AbiNumber, FdeType, Flag, PcType
from sframe_unwind.sframe.encode import (
    FunctionSpec,
    RowSpec,
    SectionSpec,
    TableSpec,
    describe,
    encode,
    encode_table,
    usual_table,
    without_layout,
)
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import Match

AMD64 = AbiNumber.AMD64_ENDIAN_LITTLE
S390X = AbiNumber.S390X_ENDIAN_BIG
ADDRESS = 0x10000
ROW = RowSpec(0, 3, (8,))
FUNCTION = FunctionSpec(0x1000, 16, (ROW,))


def table(*functions: FunctionSpec, version: int = 2, **changes: Any) -> TableSpec:
    return usual_table(version, AMD64, functions)._replace(**changes)


def opened(*tables: TableSpec) -> Section:
    return Section(encode(SectionSpec(ADDRESS, tables)), ADDRESS)


def test_usual_tables() -> None:
    """The bytes of a section as GNU ld writes it."""
    later = FUNCTION._replace(start=0x2000)
    assert usual_table(2, AMD64, [later, FUNCTION]) == TableSpec(
        2, AMD64, Flag.FDE_SORTED, fixed_ra_offset=-8, functions=(FUNCTION, later)
    )
    assert usual_table(3, S390X) == TableSpec(3, S390X, Flag.FDE_SORTED | Flag.FDE_FUNC_START_PCREL)
    assert usual_table(1, S390X).byteorder == "big"
    assert usual_table(1, AMD64).byteorder == "little"


@pytest.mark.parametrize(("last", "size"), [(0, 1), (0xFF, 1), (0x100, 2), (0xFFFF, 2), (0x10000, 4)])
def test_the_smallest_addresses_that_hold_the_rows(last: int, size: int) -> None:
    section = opened(table(FUNCTION._replace(rows=(ROW, ROW._replace(start=last)))))
    assert section.tables[0].function(0).fde.address_size == size


@pytest.mark.parametrize("size", [1, 2, 4])
def test_given_address_sizes_are_kept(size: int) -> None:
    section = opened(table(FUNCTION._replace(address_size=size)))
    assert section.tables[0].function(0).fde.address_size == size
    assert section.tables[0].raw_rows(section.tables[0].function(0)) == [(0, b"\x03\x08")]


def test_functions_are_written_as_given() -> None:
    """The encoder neither sorts functions nor corrects a wrong claim that they are sorted."""
    spec = table()._replace(functions=(FUNCTION._replace(start=0x2000), FUNCTION))
    assert spec.flags == Flag.FDE_SORTED
    assert [function.start for function in opened(spec).functions()] == [0x2000, 0x1000]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_rows_in_another_order_than_functions(version: int) -> None:
    """GNU ld sorts functions, and leaves their rows where they are."""
    length = 8 if version == 3 else 3
    first = FUNCTION._replace(rows_at=length)
    second = FUNCTION._replace(start=0x2000, rows=(RowSpec(0, 3, (9,)),), rows_at=0)
    section = opened(table(first, second, version=version))
    places = [function.fde.rows_offset for function in section.functions()]
    assert places == ([8 + 5, 5] if version == 3 else [3, 0])
    assert describe(section).tables[0].functions == (first._replace(address_size=1), second._replace(address_size=1))


def test_functions_may_share_rows() -> None:
    """The rows of the second function are the last ones of the first."""
    first = FUNCTION._replace(rows=(ROW, RowSpec(1, 3, (16,))), rows_at=0)
    second = FunctionSpec(0x2000, 16, (RowSpec(1, 3, (16,)),), rows_at=3)
    third = first._replace(start=0x3000)
    section = opened(table(first, second, third))
    assert section.tables[0].header.fre_size == 6
    assert section.tables[0].header.num_fres == 5
    assert [section.tables[0].raw_rows(function)[-1] for function in section.functions()] == [(1, b"\x03\x10")] * 3


def test_gaps_and_places_that_are_given() -> None:
    spec = table(FUNCTION._replace(rows_at=4), fde_offset=8, fre_offset=40, fre_size=12, aux_header=b"aux", offset=16)
    section = Section(encode(SectionSpec(ADDRESS, (spec,), 200))[16:], ADDRESS + 16)
    head = section.tables[0].header
    assert (head.fdes_start, head.fres_start, head.fres_end) == (28 + 3 + 8, 28 + 3 + 40, 28 + 3 + 52)
    assert section.size == 184
    assert [function.start for function in section.functions()] == [0x1000]


def test_rows_before_functions() -> None:
    spec = table(FUNCTION, fre_offset=0, fde_offset=3)
    section = opened(spec)
    assert section.tables[0].header.fres_start < section.tables[0].header.fdes_start
    assert isinstance(section.lookup(0x1000), Match)


def test_without_layout_a_changed_function_finds_its_place() -> None:
    described = describe(opened(table(FUNCTION, FUNCTION._replace(start=0x2000)))).tables[0]
    longer = FUNCTION._replace(rows=(ROW, RowSpec(1, 5, (16, -16))))
    changed = described._replace(functions=(longer._replace(rows_at=0), *described.functions[1:]))
    with pytest.raises(EncodeError, match="rows at 0x3 overlap"):
        encode_table(changed, ADDRESS)
    section = opened(without_layout(changed))
    assert [function.fde.num_rows for function in section.functions()] == [2, 1]


def test_tables_are_aligned_unless_told_otherwise() -> None:
    section = opened(table(FUNCTION), table(FUNCTION))
    assert [one.offset for one in section.tables] == [0, 56]
    section = opened(table(FUNCTION), table(FUNCTION, offset=51))
    assert [one.offset for one in section.tables] == [0, 51]


def test_describe_refuses_what_it_cannot_give_back() -> None:
    content = encode(SectionSpec(ADDRESS, (table(FUNCTION),)))
    with pytest.raises(FormatError, match="no SFrame header in the"):
        describe(Section(content + b"more", ADDRESS))


WHERE = "table 0: function 0 at 0x1000"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (table(version=2)._replace(version=4), "table 0: unknown version 4, expected 1, 2 or 3"),
        (table(version=1, flags=Flag(5)), "table 0: flags 0x5: version 1 has no 0x4"),
        (table(version=3, flags=Flag(2)), "table 0: flags 0x2: version 3 has no 0x2"),
        (table(fixed_ra_offset=128), "table 0: fixed RA offset: 128 does not fit in 1 byte, expected -128 to 127"),
        (table(fixed_fp_offset=-129), "table 0: fixed FP offset: -129 does not fit in 1 byte, expected -128 to 127"),
        (
            table(aux_header=bytes(256)),
            "table 0: length of the auxiliary header: 256 does not fit in 1 byte, expected 0 to 255",
        ),
        (table(FUNCTION, fre_size=2), "table 0: FRE sub-section of 0x2 bytes, but the rows take 0x3"),
        (
            table(FUNCTION, fre_offset=19),
            "table 0: FRE sub-section at 0x13 overlaps the FDE sub-section, which runs from 0x0 to 0x14",
        ),
        (
            table(fde_offset=-1),
            "table 0: offset of the FDE sub-section: -1 does not fit in 4 bytes, expected 0 to 4294967295",
        ),
        (
            table(FUNCTION._replace(start=ADDRESS + (1 << 31))),
            f"table 0: function 0 at 0x80010000: start, relative: {1 << 31} does not fit in 4 bytes,"
            f" expected {-(1 << 31)} to {(1 << 31) - 1}",
        ),
        (
            table(FUNCTION._replace(start=1 << 64), version=3),
            "table 0: function 0 at 0x10000000000000000: start, relative: 18446744073709486052 does not fit in 8 bytes,"
            " expected -9223372036854775808 to 9223372036854775807",
        ),
        (
            table(FUNCTION._replace(size=1 << 32)),
            f"{WHERE}: size: {1 << 32} does not fit in 4 bytes, expected 0 to {(1 << 32) - 1}",
        ),
        (
            table(FUNCTION._replace(size=-1)),
            f"{WHERE}: size: -1 does not fit in 4 bytes, expected 0 to {(1 << 32) - 1}",
        ),
        (table(FUNCTION._replace(address_size=3)), f"{WHERE}: row start addresses of 3 bytes, expected 1, 2 or 4"),
        (
            table(FUNCTION._replace(repetition_size=256)),
            f"{WHERE}: repetition size: 256 does not fit in 1 byte, expected 0 to 255",
        ),
        (
            table(FUNCTION._replace(pc_type=PcType.MASK)),
            f"{WHERE}: repetition size 0 in a mask FDE, expected 1 to 255",
        ),
        (
            table(FUNCTION._replace(pc_type=PcType.MASK, repetition_size=8), version=1),
            f"{WHERE}: repetition size 8, expected 16: version 1 stores none",
        ),
        (
            table(FUNCTION._replace(repetition_size=16), version=1),
            f"{WHERE}: repetition size 16, expected 0: version 1 stores none",
        ),
        (
            table(FUNCTION._replace(fde_type=FdeType.FLEX)),
            f"{WHERE}: a flexible FDE, which version 2 does not have, expected version 3",
        ),
        (
            table(FUNCTION._replace(signal=True), version=1),
            f"{WHERE}: a signal frame, which version 1 cannot mark, expected version 3",
        ),
        (
            table(FUNCTION._replace(rows=(ROW,) * 65536), version=3),
            f"{WHERE}: number of rows: 65536 does not fit in 2 bytes, expected 0 to 65535",
        ),
        (
            table(FUNCTION._replace(rows=(RowSpec(256, 3, (8,)),), address_size=1)),
            f"{WHERE}: row 0: start: 256 does not fit in 1 byte, expected 0 to 255",
        ),
        (
            table(FUNCTION._replace(rows=(RowSpec(1 << 32, 3, (8,)),))),
            f"{WHERE}: row 0: start: {1 << 32} does not fit in 4 bytes, expected 0 to {(1 << 32) - 1}",
        ),
        (
            table(FUNCTION._replace(rows=(RowSpec(4, 3, (8,)), RowSpec(3, 3, (8,))))),
            f"{WHERE}: row 1: starts at 0x3, before its predecessor at 0x4",
        ),
        (
            table(FUNCTION._replace(rows=(RowSpec(0, 256),))),
            f"{WHERE}: row 0: info byte: 256 does not fit in 1 byte, expected 0 to 255",
        ),
        (
            table(FUNCTION._replace(rows=(RowSpec(0, 0x60),))),
            f"{WHERE}: row 0: info byte 0x60 has the invalid word size 3, expected 0 to 2",
        ),
        (
            table(FUNCTION._replace(rows=(ROW, RowSpec(1, 5, (8,))))),
            f"{WHERE}: row 1: 1 data word, but info byte 0x5 says 2",
        ),
        (
            table(FUNCTION._replace(rows=(RowSpec(0, 5, (8, 128)),))),
            f"{WHERE}: row 0: word 2: 128 does not fit in 1 byte, expected -128 to 127",
        ),
        (
            table(FUNCTION._replace(rows=(RowSpec(0, 0x23, (-32769,)),))),
            f"{WHERE}: row 0: word 1: -32769 does not fit in 2 bytes, expected -32768 to 32767",
        ),
        (
            table(FUNCTION._replace(rows_at=1 << 32)),
            f"{WHERE}: offset of the rows: {1 << 32} does not fit in 4 bytes, expected 0 to {(1 << 32) - 1}",
        ),
        (
            table(FUNCTION._replace(rows_at=0), FUNCTION._replace(start=0x2000, rows_at=1)),
            "table 0: function 1 at 0x2000: rows at 0x1 overlap others, expected 0x3 or more",
        ),
    ],
)
def test_what_does_not_fit_is_refused(spec: TableSpec, message: str) -> None:
    with pytest.raises(EncodeError) as caught:
        encode(SectionSpec(ADDRESS, (spec,)))
    assert str(caught.value) == message


def test_places_in_the_section_that_are_taken() -> None:
    with pytest.raises(EncodeError) as caught:
        encode(SectionSpec(ADDRESS, (table(FUNCTION), table(FUNCTION, offset=50))))
    assert str(caught.value) == "table 1: offset 0x32 is within its predecessor, expected 0x33 or more"
    with pytest.raises(EncodeError) as caught:
        encode(SectionSpec(ADDRESS, (table(FUNCTION),), 50))
    assert str(caught.value) == "section: size 0x32 is too small, expected 0x33 or more"


@pytest.mark.parametrize("version", [2, 3])
def test_item_22_the_most_rows_that_a_function_can_have(version: int) -> None:
    """Version 3 counts them in 16 bits, versions 1 and 2 in 32."""
    number = 65535 if version == 3 else 70000
    rows = tuple(RowSpec(4 * i, 3, (8,)) for i in range(number))
    section = opened(table(FUNCTION._replace(size=4 * number, rows=rows), version=version))
    match = section.lookup(0x1000 + 4 * number - 1)
    assert isinstance(match, Match)
    assert match.row_start == 4 * (number - 1)


def test_an_empty_section() -> None:
    assert encode(SectionSpec(ADDRESS)) == b""
    assert describe(Section(b"", ADDRESS)) == SectionSpec(ADDRESS, (), 0)
