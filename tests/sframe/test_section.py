"""Sections that are empty, concatenated, padded or damaged."""

from __future__ import annotations

import tracemalloc

import pytest

from sframe_unwind.errors import FormatError, UnsupportedError
from sframe_unwind.memory import LazyBytes
from sframe_unwind.sframe.constants import AbiNumber, Flag
from sframe_unwind.sframe.encode import FunctionSpec, RowSpec, SectionSpec, encode, usual_table
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import Match, Miss
from tests.work import at_most_lines

AMD64 = AbiNumber.AMD64_ENDIAN_LITTLE
ADDRESS = 0x10000
ROWS = (RowSpec(0, 3, (8,)),)


def one(start: int, version: int = 2, size: int = 16) -> bytes:
    """Return a section at ADDRESS with one function."""
    return encode(SectionSpec(ADDRESS, (usual_table(version, AMD64, [FunctionSpec(start, size, ROWS)]),)))


def several(*starts: int, version: int = 2) -> bytes:
    """Return a section at ADDRESS with one table for each of these functions."""
    tables = [usual_table(version, AMD64, [FunctionSpec(start, 16, ROWS)]) for start in starts]
    return encode(SectionSpec(ADDRESS, tuple(tables)))


def starts(section: Section) -> list[int]:
    return [function.start for function in section.functions()]


def test_item_01_an_empty_section_is_no_data() -> None:
    section = Section(b"", ADDRESS)
    assert (section.tables, section.rest, section.arch, section.size) == ([], None, None, 0)
    assert isinstance(section.lookup(ADDRESS), Miss)
    assert section.find(ADDRESS) is None
    assert section.covered() == 0
    assert starts(section) == []


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("abi", list(AbiNumber))
def test_item_01_a_header_without_functions_covers_nothing(version: int, abi: AbiNumber) -> None:
    section = Section(encode(SectionSpec(ADDRESS, (usual_table(version, abi),))), ADDRESS)
    assert section.rest is None
    assert section.arch is not None
    assert len(section.tables[0]) == 0
    assert isinstance(section.lookup(ADDRESS), Miss)
    assert section.covered() == 0


@pytest.mark.parametrize("version", [1, 2, 3])
def test_item_03_every_concatenated_table_is_read(version: int) -> None:
    section = Section(several(0x3000, 0x1000, 0x2000, version=version), ADDRESS)
    assert section.rest is None
    assert starts(section) == [0x3000, 0x1000, 0x2000]
    assert section.covered() == 48
    for start in (0x1000, 0x2000, 0x3000):
        match = section.lookup(start + 15)
        assert isinstance(match, Match)
        assert match.function.start == start
        assert section.find(start + 15) == match.function
        assert isinstance(section.lookup(start - 1), Miss)
        assert section.find(start + 16) is None


def test_item_03_tables_of_different_versions() -> None:
    """An output section can contain tables that different assemblers wrote."""
    tables = [usual_table(version, AMD64, [FunctionSpec(0x1000 * version, 16, ROWS)]) for version in (3, 1, 2)]
    section = Section(encode(SectionSpec(ADDRESS, tuple(tables))), ADDRESS)
    assert [table.header.version for table in section.tables] == [3, 1, 2]
    assert starts(section) == [0x3000, 0x1000, 0x2000]


def test_item_03_an_empty_table_among_others() -> None:
    tables = (usual_table(2, AMD64), usual_table(2, AMD64, [FunctionSpec(0x1000, 16, ROWS)]), usual_table(2, AMD64))
    section = Section(encode(SectionSpec(ADDRESS, tables)), ADDRESS)
    assert len(section.tables) == 3
    assert isinstance(section.lookup(0x1000), Match)
    assert isinstance(section.lookup(0xFFF), Miss)


@pytest.mark.parametrize("empty", [0x1000, 0x1008, 0x100F])
def test_item_10_a_function_of_no_size_in_another_table_hides_nothing(empty: int) -> None:
    tables = [usual_table(2, AMD64, [FunctionSpec(start, size, ROWS)]) for start, size in ((0x1000, 16), (empty, 0))]
    for order in (tables, tables[::-1]):
        section = Section(encode(SectionSpec(ADDRESS, tuple(order))), ADDRESS)
        found = [section.find(pc) for pc in (0xFFF, 0x1000, empty, 0x100F, 0x1010)]
        assert [function and function.fde.size for function in found] == [None, 16, 16, 16, None]


def test_item_03_tables_without_a_gap() -> None:
    """A linker script may leave out the alignment."""
    first, second = one(0x1000), one(0x2000)
    assert len(first) % 8, "there has to be a gap to leave out"
    section = Section(first + second, ADDRESS)
    assert len(section.tables) == 2
    # Its start counts from its own header, which was moved.
    assert starts(section) == [0x1000, 0x2000 + len(first)]


@pytest.mark.parametrize("zeros", [1, 3, 7, 8, 200])
def test_zeros_after_the_last_table_are_padding(zeros: int) -> None:
    section = Section(one(0x1000) + bytes(zeros), ADDRESS)
    assert section.rest is None
    assert starts(section) == [0x1000]


def test_item_03_other_bytes_after_the_last_table_are_reported() -> None:
    content = one(0x1000)
    section = Section(content + b"\0\0what is this", ADDRESS)
    expected = f"no SFrame header in the 14 bytes after the last table (.sframe offset {len(content):#x})"
    assert str(section.rest) == expected
    assert starts(section) == [0x1000]


def test_item_03_a_malformed_second_header_is_reported_and_the_first_read() -> None:
    content = several(0x1000, 0x2000)
    second = content.index(b"\xe2\xde", 1)
    section = Section(content[: second + 2] + b"\x09" + content[second + 3 :], ADDRESS)
    message = f"{len(content) - second} bytes after the last table: unknown SFrame version 9, expected 1, 2 or 3"
    assert str(section.rest) == f"{message} (.sframe offset {second + 2:#x})"
    assert starts(section) == [0x1000]
    assert isinstance(section.lookup(0x1000), Match)
    assert isinstance(section.lookup(0x2000), Miss)


def test_item_03_a_truncated_second_table_is_reported() -> None:
    content = several(0x1000, 0x2000)
    section = Section(content[:-1], ADDRESS)
    assert "FRE sub-section runs from" in str(section.rest)
    assert "beyond the section's end" in str(section.rest)
    assert starts(section) == [0x1000]


@pytest.mark.parametrize("rest", [b"", bytes(58), b"\0\0garbage", b"\xe2\xde\x09" + bytes(55), b"\xe2\xde"])
def test_a_segment_may_be_longer_than_the_section_in_it(rest: bytes) -> None:
    """Bytes that are loaded after the section are not decoded."""
    content = one(0x1000)
    section = Section(content + rest, ADDRESS, size_known=False)
    assert section.rest is None
    assert section.size == len(content)
    assert starts(section) == [0x1000]


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("aux", [b"\1", b"12345678", bytes(range(255))])
def test_item_05_an_auxiliary_header(version: int, aux: bytes) -> None:
    table = usual_table(version, AMD64, [FunctionSpec(0x1000, 16, ROWS)])._replace(aux_header=aux)
    section = Section(encode(SectionSpec(ADDRESS, (table, table))), ADDRESS)
    assert starts(section) == [0x1000, 0x1000]
    assert [table.aux_header for table in section.tables] == [aux, aux]
    assert isinstance(section.lookup(0x100F), Match)


@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [
        (2, 4, "unknown SFrame version 4"),
        (3, 0xF0, "unknown flag bits 0xf0"),
        (4, 9, "unknown ABI 9"),
    ],
)
def test_item_06_a_first_header_that_is_not_known(offset: int, value: int, message: str) -> None:
    content = bytearray(one(0x1000))
    content[offset] = value
    with pytest.raises(UnsupportedError, match=message) as caught:
        Section(bytes(content), ADDRESS)
    assert caught.value.offset == offset


def test_an_error_names_the_function_and_its_place() -> None:
    content = bytearray(one(0x1000))
    row = 28 + 20
    content[row + 1] = 0x60
    section = Section(bytes(content), ADDRESS)
    with pytest.raises(FormatError) as caught:
        section.lookup(0x1000)
    expected = f"function at 0x1000: row 0: info byte 0x60 has the invalid word size 3 (.sframe offset {row + 1:#x})"
    assert str(caught.value) == expected


def test_an_error_in_one_function_leaves_the_others() -> None:
    table = usual_table(2, AMD64, [FunctionSpec(0x1000, 16, ROWS), FunctionSpec(0x2000, 16, ROWS)])
    content = bytearray(encode(SectionSpec(ADDRESS, (table,))))
    content[28 + 40 + 1] = 0x60
    section = Section(bytes(content), ADDRESS)
    with pytest.raises(FormatError):
        section.lookup(0x1000)
    assert isinstance(section.lookup(0x2000), Match)


def test_item_07_a_row_that_means_nothing_names_its_function() -> None:
    table = usual_table(2, AMD64, [FunctionSpec(0x1000, 16, (RowSpec(0, 7, (8, 8, 8)),))])
    section = Section(encode(SectionSpec(ADDRESS, (table,))), ADDRESS)
    with pytest.raises(FormatError, match=r"function at 0x1000: AMD64 row with 3 data words.*\(\.sframe offset 0x30\)"):
        section.lookup(0x1000)


def test_an_error_in_the_second_header_names_its_own_offset() -> None:
    rows = (RowSpec(0, 3, (8,)),)
    first = usual_table(2, AMD64, [FunctionSpec(0x1000, 16, rows)])
    second = usual_table(2, AMD64, [FunctionSpec(0x2000, 16, rows)])._replace(fixed_ra_offset=0)
    section = Section(encode(SectionSpec(ADDRESS, (first, second))), ADDRESS)
    field = section.tables[1].offset + 6
    assert field > 6
    with pytest.raises(FormatError, match=rf"without a fixed return address offset.*\(\.sframe offset {field:#x}\)"):
        section.lookup(0x2000)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_item_07_huge_numbers_cost_neither_memory_nor_time(version: int) -> None:
    """The numbers of functions and rows, the sizes and the offsets are all as large as their fields allow."""
    content = bytearray(one(0x1000, version, 0xFFFFFFFF))
    rows_field = {1: 28 + 12, 2: 28 + 12, 3: 28 + 16}[version]
    width = 2 if version == 3 else 4
    content[rows_field : rows_field + width] = b"\xff" * width
    tracemalloc.start()
    with at_most_lines(100_000):
        with pytest.raises(FormatError, match="row 1 of"):
            Section(bytes(content), ADDRESS).lookup(0x1000)
        for field in range(8, 28, 4):
            damaged = bytes(content[:field]) + b"\xff" * 4 + bytes(content[field + 4 :])
            try:
                Section(damaged, ADDRESS).lookup(0x1000)
            except FormatError as error:
                problem = error.what
            assert "sub-section" in problem or "row 1 of" in problem
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


@pytest.mark.parametrize("start", [ADDRESS - (1 << 31), ADDRESS + (1 << 31) - 1])
@pytest.mark.parametrize("version", [1, 2])
def test_item_08_start_fields_of_32_bits_are_signed(version: int, start: int) -> None:
    assert starts(Section(one(start, version), ADDRESS)) == [start]


@pytest.mark.parametrize("start", [0x7FFF_FFFF_0000, 0x1000, 1 << 62])
def test_item_08_start_fields_of_64_bits(start: int) -> None:
    section = Section(one(start, 3), ADDRESS)
    assert starts(section) == [start]
    assert isinstance(section.lookup(start + 5), Match)


SORTED, PCREL = Flag.FDE_SORTED, Flag.FDE_FUNC_START_PCREL


@pytest.mark.parametrize(
    ("version", "flags", "pcrel"),
    [
        # An assembler's table, copied by a linker that does not know SFrame, and older than the flag for it.
        (1, Flag(0), True),
        (2, Flag(0), True),
        (1, SORTED, False),
        (2, SORTED, False),
        (2, PCREL, True),
        (2, PCREL | SORTED, True),
        (3, Flag(0), False),
        (3, SORTED, False),
        (3, PCREL, True),
        (3, PCREL | SORTED, True),
    ],
)
def test_starts_are_relative_to_themselves_or_to_their_header(version: int, flags: Flag, pcrel: bool) -> None:
    """The section has two tables, and so field, header and section are three different origins."""
    functions = [FunctionSpec(0x1000, 16, ROWS), FunctionSpec(0x2000, 16, ROWS)]
    table = usual_table(version, AMD64, functions)._replace(flags=flags)
    content = encode(SectionSpec(ADDRESS, (table, table)))
    section = Section(content, ADDRESS)
    assert starts(section) == [0x1000, 0x2000, 0x1000, 0x2000]
    second = content.index(b"\xe2\xde", 1)
    field = second + 28 + {1: 17, 2: 20, 3: 16}[version]
    raw = int.from_bytes(content[field : field + (8 if version == 3 else 4)], "little", signed=True)
    assert raw == 0x2000 - ADDRESS - (field if pcrel else second)
    assert section.tables[1].extent(1) == (0x2000, 16)
    assert section.tables[1].extents() == ([0x1000, 0x2000], [16, 16])


def test_opening_reads_the_header_and_a_lookup_little_more() -> None:
    """A section of 20,000 functions is opened, and one of them is looked up."""
    functions = [FunctionSpec(0x100000 + 32 * number, 32, ROWS) for number in range(20_000)]
    content = encode(SectionSpec(ADDRESS, (usual_table(2, AMD64, functions),)))
    fetched = []

    def fetch(offset: int, size: int) -> bytes:
        fetched.append(size)
        return content[offset : offset + size]

    section = Section(LazyBytes(fetch, len(content)), ADDRESS)
    assert sum(fetched) <= 2048
    assert isinstance(section.lookup(0x100000 + 32 * 12_345 + 7), Match)
    assert sum(fetched) <= 32 * 1024
