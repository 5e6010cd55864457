"""Properties of generated sections: the round trip, the search, and lazy reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sframe_unwind.errors import FormatError
from sframe_unwind.memory import LazyBytes
from sframe_unwind.sframe.constants import AbiNumber, FdeType, PcType
from sframe_unwind.sframe.encode import (
    FunctionSpec,
    RowSpec,
    SectionSpec,
    describe,
    encode,
    usual_table,
    without_layout,
)
from sframe_unwind.sframe.raw import VERBATIM, RawFdes
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import Match, Miss, Table
from tests.sframe.strategies import SECTION_ADDRESS, Made, raw_sections, sections

QUICK = settings(max_examples=150)


def decoded(spec: SectionSpec) -> Section:
    return Section(encode(spec), spec.address)


def lookup(section: Section, pc: int) -> Any:
    """Return the section's result for an address, in the form that `Made.lookup` gives."""
    match = section.lookup(pc)
    return (match.function.start, match.row_start, match.rule) if isinstance(match, Match) else None


@QUICK
@given(raw_sections())
def test_a_section_comes_back_from_its_description(spec: SectionSpec) -> None:
    """The bytes are the same, every field has the value that was put in, and both ways to read rows agree."""
    content = encode(spec)
    described = describe(Section(content, spec.address))
    assert encode(described) == content
    bare = [without_layout(table)._replace(fde_offset=table.fde_offset) for table in described.tables]
    assert spec.tables == tuple(bare)
    assert_rows_are_the_same(Section(content, spec.address))


@QUICK
@given(sections(), st.data(), st.integers(1, 100))
def test_item_10_a_section_answers_by_the_rules_of_which_it_was_made(made: Made, data: Any, chunk: int) -> None:
    """Sections sorted or not, truthful or not, with functions of no size, mask functions and several tables.

    Making a section takes longer than all questions.
    """
    content, interesting = encode(made.spec), made.interesting()
    assert_functions_are_those_given(made)
    found = {pc: made.lookup(pc) for pc in interesting}
    assert_answers(decoded(made.spec), found, interesting)
    # A section remembers things while it is searched, which must not change its answers.
    assert_answers(decoded(made.spec), found, data.draw(st.lists(st.sampled_from(interesting), max_size=20)))
    lazy = in_pieces(content, chunk)
    assert describe(lazy) == describe(Section(content, SECTION_ADDRESS))
    assert_answers(lazy, found, interesting)


def assert_functions_are_those_given(made: Made) -> None:
    said = {
        (function.start, function.fde.size, tuple(zip(*function.table.rows(function))))
        for function in decoded(made.spec).functions()
    }
    assert said == {(function.start, function.size, function.rows) for function in made.functions}


def assert_answers(section: Section, expected: Mapping[int, Any], pcs: Sequence[int]) -> None:
    """Check the results for some addresses, asked for in this order."""
    for pc in pcs:
        assert lookup(section, pc) == expected[pc], hex(pc)


def in_pieces(content: bytes, chunk: int) -> Section:
    """Return a section whose content is read when it is needed, in pieces of this size."""

    def fetch(offset: int, size: int) -> bytes:
        piece = content[offset : offset + size]
        assert len(piece) == size, "asked for more than there is"
        return piece

    return Section(LazyBytes(fetch, len(content), chunk), SECTION_ADDRESS)


def opened(content: bytes) -> Section | FormatError:
    """Return the section, or the error if it cannot be opened; any other exception fails the test."""
    try:
        return Section(content, SECTION_ADDRESS)
    except FormatError as error:
        return error


def answer(section: Section, pc: int) -> Match | Miss | FormatError:
    """Return the section's result for an address, or its error; any other exception fails the test."""
    try:
        return section.lookup(pc)
    except FormatError as error:
        return error


def damaged(data: Any, spec: SectionSpec) -> bytes:
    """Return the bytes of a section, some of them changed, and cut at some place."""
    content = bytearray(encode(spec._replace(size=None)))
    for at in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=6)):
        content[at] = data.draw(st.integers(0, 255))
    return bytes(content[: data.draw(st.integers(0, len(content)))])


@QUICK
@given(sections(max_tables=2), st.data())
def test_item_07_damaged_bytes_give_an_answer_or_a_documented_error(made: Made, data: Any) -> None:
    """For any bytes at all, FormatError is the only exception."""
    content = damaged(data, made.spec)
    section = opened(content)
    if isinstance(section, FormatError):
        assert section.offset is not None
        assert 0 <= section.offset <= len(content)
        return
    for pc in made.interesting():
        found = answer(section, pc)
        if isinstance(found, FormatError):
            assert found.what
        else:
            assert found.function is None or found.function.start <= pc < found.function.end


@settings(QUICK, max_examples=300)
@given(st.binary(max_size=120))
def test_item_07_random_bytes_give_a_documented_error(content: bytes) -> None:
    for magic in (b"", b"\xe2\xde", b"\xde\xe2"):
        for version in (b"", b"\x01", b"\x02", b"\x03"):
            candidate = magic + version + content
            section = opened(candidate)
            if isinstance(section, Section):
                assert section.size == len(candidate)
                answers = [answer(section, pc) for pc in range(SECTION_ADDRESS, SECTION_ADDRESS + 64)]
                assert all(found.what for found in answers if isinstance(found, FormatError))
            else:
                assert section.offset is not None


def careful_rows(table: Table, number: int) -> list[tuple[int, bytes]] | None:
    """Return the rows of a function by the methods that report errors."""
    try:
        function = table.function(number)
        return None if function.fde.pc_type is PcType.MASK else table.raw_rows(function)
    except FormatError:
        return None


def assert_rows_are_the_same(section: Section) -> None:
    for table in section.tables:
        plain = table.plain_rows()
        for number in range(len(table)):
            found = plain.read(number, [VERBATIM] * len(FdeType))
            assert (found and list(zip(*found))) == careful_rows(table, number)


@settings(QUICK, max_examples=500)
@given(raw_sections(), st.data())
def test_plain_rows_of_a_damaged_section_are_the_rows(spec: SectionSpec, data: Any) -> None:
    section = opened(damaged(data, spec))
    if isinstance(section, Section):
        assert_rows_are_the_same(section)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_plain_rows_are_the_rows_whatever_the_attributes_say(version: int) -> None:
    function = FunctionSpec(SECTION_ADDRESS, 16, (RowSpec(0, 3, (8,)), RowSpec(4, 3, (16,))))
    table = usual_table(version, AbiNumber.AMD64_ENDIAN_LITTLE, [function])
    content = encode(SectionSpec(SECTION_ADDRESS, (table,)))
    entry = Section(content, SECTION_ADDRESS).tables[0].function(0)
    first = RawFdes(content, 0, entry.table.header).read(0).info_offset
    for at in (first, first + 1, first + 2):
        for value in range(256):
            assert_rows_are_the_same(Section(content[:at] + bytes([value]) + content[at + 1 :], SECTION_ADDRESS))
