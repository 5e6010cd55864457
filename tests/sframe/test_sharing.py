"""Functions with the same rows share one copy of them."""

from __future__ import annotations

import pytest

from sframe_unwind.sframe.encode import SectionSpec, encode, usual_table
from sframe_unwind.sframe.fre import MAX_SHARED_ROWS
from sframe_unwind.sframe.listing import listed_functions
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.sharing import with_shared_rows
from tests.sframe.functions import AMD64, function


@pytest.mark.parametrize("version", [1, 2, 3])
def test_item_37_shared_rows(version: int) -> None:
    one, other = [(0, 8), (1, 16)], [(0, 8), (1, 16), (9, 8)]
    table = usual_table(version, AMD64, [function(0x100 * n, 32, *rows) for n, rows in enumerate((one, other, one), 1)])
    places = [function.rows_at for function in with_shared_rows(table).functions]
    # The attributes of version 3 include the number of rows, and come before the rows.
    assert places == ([0, 0, 0] if version < 3 else [0, 11, 0])
    data = [encode(SectionSpec(0x1000, (made,))) for made in (table, with_shared_rows(table))]
    assert len(data[1]) < len(data[0])
    plain, shared = ([entry.rows() for entry in Section(each, 0x1000).functions()] for each in data)
    assert plain == shared


def test_item_37_functions_with_many_rows_stay_readable() -> None:
    rows = [(number, 8 * (number % 9)) for number in range(MAX_SHARED_ROWS + 1)]
    for shown in (rows, rows[1:]):
        table = usual_table(3, AMD64, [function(0x1000 * n, 0x1000, *shown) for n in range(400)])
        shared = with_shared_rows(table)
        assert len({one.rows_at for one in shared.functions}) == (400 if shown is rows else 1)
        section = Section(encode(SectionSpec(0x1000, (shared,))), 0x1000)
        assert len(list(listed_functions([section]))) == 400
