"""Overlapping and nested ranges of addresses, compared with a linear search."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sframe_unwind.address import ADDRESS_MASK, Extents, RangeMap, find_range, lookup_address, merged, page_start

RANGES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=12).map(
    lambda pairs: [(start, end, number) for number, (start, end) in enumerate(pairs)]
)


@given(RANGES, st.integers(-1, 61))
def test_find_gives_the_range_that_begins_last(ranges: list[tuple[int, int, int]], address: int) -> None:
    containing = [entry for entry in ranges if entry[0] <= address < entry[1]]
    index = RangeMap(ranges)
    found = index.find(address)
    assert (found is None) == (not containing)
    if found is not None:
        assert found in containing
        assert found[0] == max(start for start, _, _ in containing)
        assert index.get(address) == found[2]


@given(RANGES, st.integers(0, 60), st.integers(1, 20))
def test_overlapping_gives_every_range_that_shares_an_address(
    ranges: list[tuple[int, int, int]], start: int, size: int
) -> None:
    expected = [entry for entry in ranges if entry[0] < entry[1] and entry[0] < start + size and start < entry[1]]
    assert sorted(RangeMap(ranges).overlapping(start, start + size)) == sorted(expected)


@given(RANGES, st.integers(0, 60), st.integers(1, 20))
def test_extents_are_those_of_a_map(ranges: list[tuple[int, int, int]], start: int, size: int) -> None:
    chosen = [entry for entry in ranges if entry[0] < entry[1]]
    extents, index = Extents((first, end) for first, end, _ in chosen), RangeMap(chosen)
    assert list(extents) == [extents[number] for number in range(len(extents))]
    whole = [(*extents[number], chosen[extents.order[number]][2]) for number in range(len(extents))]
    assert whole == list(index)
    found = extents.overlapping(start, start + size)
    assert [whole[number] for number in found] == index.overlapping(start, start + size)


@given(RANGES, st.integers(0, 12))
def test_a_map_with_ranges_added_is_as_a_new_one(ranges: list[tuple[int, int, int]], before: int) -> None:
    grown, new = RangeMap(ranges[:before]), RangeMap(ranges)
    grown.add(ranges[before:])
    assert list(grown) == list(new)
    assert [grown.find(address) for address in range(-1, 62)] == [new.find(address) for address in range(-1, 62)]


def test_a_return_address_is_looked_up_in_the_call() -> None:
    assert lookup_address(0x1000, interrupted=True) == 0x1000
    assert lookup_address(0x1000, interrupted=False) == 0xFFF


def test_page_start() -> None:
    assert [page_start(address) for address in (0, 0xFFF, 0x1000, 0x1FFF)] == [0, 0, 0x1000, 0x1000]


@given(RANGES, st.integers(-1, 61))
def test_a_range_among_ranges_without_overlaps(ranges: list[tuple[int, int, int]], address: int) -> None:
    apart = merged((start, end) for start, end, _ in ranges if start < end)
    assert find_range(apart, address) == next((one for one in apart if one[0] <= address < one[1]), None)


def test_the_last_address() -> None:
    last = [(ADDRESS_MASK - 1, ADDRESS_MASK + 1, "the end of memory")]
    assert find_range(last, ADDRESS_MASK) == last[0]
    assert find_range(last, ADDRESS_MASK - 2) is None
