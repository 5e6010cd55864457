"""Lookup from an address to a function, a row and a rule."""

from __future__ import annotations

import pytest

from sframe_unwind.sframe.constants import AbiNumber, Flag, PcType
from sframe_unwind.sframe.encode import FunctionSpec, RowSpec, SectionSpec, encode, usual_table
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import Match, Miss
from sframe_unwind.unwind_rule import OUTERMOST

AMD64 = AbiNumber.AMD64_ENDIAN_LITTLE
ADDRESS = 0x10000


def cfa(offset: int, start: int = 0) -> RowSpec:
    """Return a row whose CFA identifies it."""
    return RowSpec(start, 3, (offset,))


def opened(*functions: FunctionSpec, version: int = 2, flags: Flag | None = None) -> Section:
    """Return a section with these functions in this order."""
    table = usual_table(version, AMD64)
    table = table._replace(functions=functions, flags=table.flags if flags is None else flags)
    return Section(encode(SectionSpec(ADDRESS, (table,))), ADDRESS)


def cfa_offset(section: Section, pc: int) -> int | None:
    match = section.lookup(pc)
    return None if isinstance(match, Miss) or match.rule.cfa is None else match.rule.cfa.offset


@pytest.mark.parametrize("flags", [Flag.FDE_SORTED, Flag(0)])
@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 8, 31, 100])
def test_every_function_is_found_and_no_gap(number: int, flags: Flag) -> None:
    functions = [FunctionSpec(0x1000 + 32 * i, 16, (cfa(i),)) for i in range(number)]
    section = opened(*functions, flags=flags)
    for i in range(number):
        start = 0x1000 + 32 * i
        assert [cfa_offset(section, pc) for pc in (start, start + 15)] == [i, i]
        assert [cfa_offset(section, pc) for pc in (start - 1, start + 16)] == [None, None]
    assert cfa_offset(section, 0) is None
    assert cfa_offset(section, 1 << 63) is None


def test_item_04_search_does_not_assume_order() -> None:
    functions = [FunctionSpec(0x1000 + 32 * (i * 7 % 20), 16, (cfa(i),)) for i in range(20)]
    section = opened(*functions, flags=Flag(0))
    for i in range(20):
        assert cfa_offset(section, 0x1000 + 32 * (i * 7 % 20) + 15) == i
        assert cfa_offset(section, 0x1000 + 32 * (i * 7 % 20) + 16) is None


def test_item_04_a_wrong_claim_of_order_is_found_out() -> None:
    """The flag is set, but the functions are in the opposite order."""
    functions = [FunctionSpec(0x1000 + 32 * i, 16, (cfa(i),)) for i in reversed(range(20))]
    section = opened(*functions, flags=Flag.FDE_SORTED)
    assert section.tables[0].sorted
    assert [cfa_offset(section, 0x1000 + 32 * i) for i in range(20)] == list(range(20))
    assert not section.tables[0].sorted


def test_item_04_after_a_wrong_claim_of_order_no_function_contains_what_it_does_not() -> None:
    """The search goes back over the function of no size, to one that should start before the address, but does not."""
    section = opened(FunctionSpec(0x1030, 16, (cfa(8),)), FunctionSpec(0x1010, 0), flags=Flag.FDE_SORTED)
    assert isinstance(section.lookup(0x1020), Miss)
    assert cfa_offset(section, 0x1030) == 8


def test_item_04_a_true_claim_of_order_stays() -> None:
    section = opened(*[FunctionSpec(0x1000 + 32 * i, 16, (cfa(i),)) for i in range(20)])
    assert cfa_offset(section, 0x1010) is None
    assert section.tables[0].sorted


def test_item_10_before_the_first_row_there_is_none() -> None:
    section = opened(FunctionSpec(0x1000, 16, (cfa(8, 4), cfa(16, 8))))
    assert [cfa_offset(section, 0x1000 + i) for i in (0, 3, 4, 7, 8, 15, 16)] == [None, None, 8, 8, 16, 16, None]
    assert section.find(0x1003) is not None


@pytest.mark.parametrize("flags", [Flag.FDE_SORTED, Flag(0)])
@pytest.mark.parametrize("before", [0, 1, 3])
@pytest.mark.parametrize("after", [0, 1, 3])
def test_item_10_functions_of_no_size_contain_nothing_and_hide_nothing(before: int, after: int, flags: Flag) -> None:
    """Such functions are at the start of another one, in the middle of it and at its end."""
    empty = FunctionSpec(0x1000, 0, (cfa(99),))
    functions = [
        *[empty] * before,
        FunctionSpec(0x1000, 16, (cfa(8),)),
        *[empty._replace(start=0x1000)] * after,
        empty._replace(start=0x1008),
        empty._replace(start=0x1010),
    ]
    section = opened(*functions, flags=flags)
    assert [cfa_offset(section, pc) for pc in (0xFFF, 0x1000, 0x1008, 0x100F, 0x1010)] == [None, 8, 8, 8, None]


def test_item_10_nothing_but_functions_of_no_size() -> None:
    section = opened(FunctionSpec(0x1000, 0, (cfa(8),)), FunctionSpec(0x1000, 0, ()))
    assert isinstance(section.lookup(0x1000), Miss)
    assert isinstance(section.lookup(0x1001), Miss)


@pytest.mark.parametrize(("version", "repetition"), [(1, 16), (2, 16), (2, 24), (2, 1), (2, 255), (3, 16), (3, 5)])
def test_item_11_mask_rows_count_from_the_block(version: int, repetition: int) -> None:
    """The function's start is not a multiple of the block's length, and the pc's low bits mean nothing."""
    start, middle = 0x1003, repetition // 2
    rows = (cfa(8), cfa(16, middle)) if middle else (cfa(8),)
    section = opened(
        FunctionSpec(
            start=start,
            size=3 * repetition,
            rows=rows,
            address_size=None,
            pc_type=PcType.MASK,
            repetition_size=repetition,
        ),
        version=version,
    )
    for offset in range(3 * repetition):
        expected = 16 if middle and offset % repetition >= middle else 8
        match = section.lookup(start + offset)
        assert isinstance(match, Match)
        assert cfa_offset(section, start + offset) == expected
        assert match.row_start == (middle if expected == 16 else 0)
    assert isinstance(section.lookup(start + 3 * repetition), Miss)


def test_item_11_no_row_covers_the_start_of_a_block() -> None:
    section = opened(
        FunctionSpec(
            start=0x1000, size=32, rows=(cfa(8, 4),), address_size=None, pc_type=PcType.MASK, repetition_size=16
        )
    )
    assert [cfa_offset(section, pc) for pc in (0x1003, 0x1004, 0x100F, 0x1010, 0x1014)] == [None, 8, 8, None, 8]


def test_item_12_a_plt_is_a_first_entry_and_others() -> None:
    """The PLT that GNU ld writes for lazy binding: pushes in the first entry, then one push in each other entry."""
    first = FunctionSpec(
        start=0x1000, size=16, rows=(cfa(16), cfa(24, 6)), address_size=None, pc_type=PcType.INC, repetition_size=16
    )
    others = FunctionSpec(
        start=0x1010, size=48, rows=(cfa(8), cfa(16, 11)), address_size=None, pc_type=PcType.MASK, repetition_size=16
    )
    section = opened(first, others)
    for pc, expected in {0x1000: 16, 0x1005: 16, 0x1006: 24, 0x100F: 24}.items():
        assert cfa_offset(section, pc) == expected
    for entry in (0x1010, 0x1020, 0x1030):
        assert [cfa_offset(section, entry + i) for i in (0, 10, 11, 15)] == [8, 8, 16, 16]
    assert cfa_offset(section, 0x1040) is None


@pytest.mark.parametrize("signal", [False, True])
def test_item_13_a_function_without_rows(signal: bool) -> None:
    """There is no rule, but the function is found, with the flag of a signal trampoline."""
    section = opened(FunctionSpec(0x1000, 16, (), signal=signal), version=3)
    assert isinstance(section.lookup(0x1008), Miss)
    function = section.find(0x1008)
    assert function is not None
    assert function.fde.signal is signal
    assert section.tables[0].rows(function) == ([], [])


def test_item_14_a_row_without_words_ends_the_trace() -> None:
    """A rule for the outermost frame is found, which is not the same as no rule (item 22)."""
    section = opened(FunctionSpec(0x1000, 16, (RowSpec(0, 0),)))
    match = section.lookup(0x1000)
    assert isinstance(match, Match)
    assert match.rule is OUTERMOST
    assert isinstance(section.lookup(0x1010), Miss)


def test_item_15_a_call_may_be_a_functions_last_instruction() -> None:
    """The return address is then in the next function, and one before it is right."""
    section = opened(FunctionSpec(0x1000, 16, (cfa(8),)), FunctionSpec(0x1010, 16, (cfa(32),)))
    return_address = 0x1010
    assert cfa_offset(section, return_address) == 32
    assert cfa_offset(section, return_address - 1) == 8


@pytest.mark.parametrize(
    ("size", "starts"),
    [(1, (0, 1, 0xFE, 0xFF)), (2, (0, 0xFF, 0x100, 0xFFFF)), (4, (0, 0xFFFF, 0x10000, 0xFFFFFFF0))],
)
def test_row_starts_of_every_size(size: int, starts: tuple[int, ...]) -> None:
    rows = tuple(cfa(number, start) for number, start in enumerate(starts))
    section = opened(FunctionSpec(0x1000, 0xFFFFFFFF, rows))
    assert section.tables[0].function(0).fde.address_size == size
    for number, start in enumerate(starts):
        assert cfa_offset(section, 0x1000 + start) == number
        match = section.lookup(0x1000 + start)
        assert isinstance(match, Match)
        assert match.row_start == start


def test_rows_are_decoded_once() -> None:
    section = opened(FunctionSpec(0x1000, 16, (cfa(8),)))
    table = section.tables[0]
    assert table.rows(table.function(0)) is table.rows(table.function(0))


def test_of_rows_that_start_at_the_same_place_the_last_holds() -> None:
    section = opened(FunctionSpec(0x1000, 16, (cfa(8), cfa(16), cfa(24))))
    assert cfa_offset(section, 0x1000) == 24


def test_item_22_what_the_producer_dropped_is_no_end_of_the_stack() -> None:
    section = opened(FunctionSpec(0x1000, 16, (cfa(8),)), FunctionSpec(0x1030, 16, (cfa(8),)))
    assert isinstance(section.lookup(0x1020), Miss)
    assert section.find(0x1020) is None


@pytest.mark.parametrize("flags", [Flag.FDE_SORTED, Flag(0)])
def test_item_29_of_two_functions_at_one_address_the_last_counts(flags: Flag) -> None:
    """The format does not define which is right; the result depends neither on the flag nor on earlier lookups."""
    sizes = (16, 48, 32)
    section = opened(
        FunctionSpec(0x0F00, 16, (cfa(8),)),
        *(FunctionSpec(0x1000, size, (cfa(16 * number),)) for number, size in enumerate(sizes, 1)),
        FunctionSpec(0x1100, 16, (cfa(96),)),
        flags=flags,
    )
    for _ in range(2):
        assert [cfa_offset(section, pc) for pc in (0x0F0F, 0x1000, 0x101F, 0x1100)] == [8, 48, 48, 96]
        # An address that only the others contain has no row: they contradict the last one.
        assert [cfa_offset(section, pc) for pc in (0x1020, 0x102F)] == [None, None]
