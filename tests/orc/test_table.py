"""The two sections of ORC: addresses relative to themselves, and entries."""

from __future__ import annotations

import pytest

from sframe_unwind.errors import FormatError
from sframe_unwind.orc import OrcLayout, OrcTable
from sframe_unwind.orc.entry import SIZE
from sframe_unwind.unwind_rule import UnwindRule
from tests.orc.entries import SP, UNDEFINED, entry, packed

START = 0xFFFF_FFFF_8200_0000
CODE = 0xFFFF_FFFF_8100_0000
NOTHING = entry((UNDEFINED, 0))


def table(*pairs: tuple[int, bytes]) -> OrcTable:
    """Return the table of some addresses and entries, in the order of the file."""
    return OrcTable(*packed(START, pairs), OrcLayout.WITH_END)


def offset(found: object) -> int:
    assert isinstance(found, UnwindRule)
    assert found.cfa is not None
    return found.cfa.offset


def test_a_lookup_finds_the_last_entry_up_to_an_address() -> None:
    one = table((CODE, entry((SP, 8))), (CODE + 1, entry((SP, 16))), (CODE + 9, NOTHING))
    found = [one.find(CODE + distance) for distance in (-1, 0, 1, 8)]
    assert [entry and entry.place.offset for entry in found] == [None, 8, 16, 16]
    assert [address - CODE for address, _ in one] == [0, 1, 9]


def test_the_order_of_a_file_does_not_matter() -> None:
    """A module's file is not sorted, and has an entry for the end of a section where the next one begins."""
    for pairs in (
        [(CODE + 16, entry((SP, 24))), (CODE, entry((SP, 8))), (CODE + 16, NOTHING)],
        [(CODE, entry((SP, 8))), (CODE + 16, NOTHING), (CODE + 16, entry((SP, 24)))],
        [(CODE, entry((SP, 8))), (CODE + 16, entry((SP, 24))), (CODE + 16, NOTHING)],
    ):
        starts, said = table(*pairs).rows(CODE, CODE + 32)
        assert starts == [CODE, CODE + 16]
        assert list(map(offset, said)) == [8, 24]


def test_rows_of_a_range_begin_with_what_holds_there() -> None:
    one = table((CODE, entry((SP, 8))), (CODE + 4, NOTHING), (CODE + 8, entry((SP, 16))))
    starts, said = one.rows(CODE + 2, CODE + 8)
    assert (starts, [rule is None for rule in said]) == ([CODE + 2, CODE + 4], [False, True])
    assert one.rows(CODE - 16, CODE) == ([], [])


def test_sections_that_do_not_fit() -> None:
    for addresses, entries in ((b"\0" * 8, b"\0" * SIZE), (b"\0" * 5, b"\0" * SIZE)):
        with pytest.raises(FormatError, match="do not fit"):
            OrcTable(addresses, START, entries, OrcLayout.WITH_END)
