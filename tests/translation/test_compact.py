"""Entries of functions are merged and divided where that makes the section smaller, and the rules stay the same."""

from __future__ import annotations

import pytest

from sframe_unwind.arch import amd64
from sframe_unwind.errors import TranslationError
from sframe_unwind.sframe.constants import FdeType, PauthKey, PcType
from sframe_unwind.sframe.encode import RowSpec, SectionSpec, TableSpec, encode, usual_table
from sframe_unwind.sframe.listing import listed_functions
from sframe_unwind.sframe.section import Section
from sframe_unwind.translation.compact import compacted
from sframe_unwind.translation.description import of_sframe
from sframe_unwind.translation.proof import prove
from tests.sframe.functions import AMD64, function


def always(*_: int) -> bool:
    return True


def never(*_: int) -> bool:
    return False


def starts(table: TableSpec) -> list[list[int]]:
    """Return start and end of each entry, and the place of its rows."""
    return [[one.start, one.start + one.size, *(row.start for row in one.rows)] for one in table.functions]


def test_item_37_functions_next_to_each_other() -> None:
    table = usual_table(3, AMD64, [function(0x100, 16, (0, 8), (4, 16)), function(0x110, 16, (0, 16), (8, 8))])
    assert starts(compacted(table, always).table) == [[0x100, 0x120, 0, 4, 24]]
    first, second = table.functions
    apart = [
        second._replace(pc_type=PcType.MASK, repetition_size=8),
        second._replace(signal=True),
        second._replace(pauth_key=PauthKey.B),
        second._replace(fde_type=FdeType.FLEX),
        second._replace(rows=()),
        second._replace(rows=(RowSpec(1, 0x03, (8,)),)),
    ]
    for second in apart:
        other = compacted(table._replace(functions=(first, second)), always)
        assert [one.start for one in other.table.functions] == [0x100, 0x110], second
    assert starts(compacted(table, never).table) == starts(table)


def test_an_entry_has_at_most_so_many_rows_or_one_function() -> None:
    one, other = function(0x100, 16, (0, 8), (4, 16), (6, 24)), function(0x110, 16, (0, 32), (8, 40))
    table = usual_table(3, AMD64, [one, other])
    assert starts(compacted(table, always, max_rows=5).table) == [[0x100, 0x120, 0, 4, 6, 16, 24]]
    assert starts(compacted(table, always, max_rows=2).table) == starts(table)


def test_functions_that_begin_alike_are_divided() -> None:
    """Their first rows become one copy; an entry in the middle of a function begins where the rule changes."""
    begin = [(2 * number, 8 * number + 8) for number in range(12)]
    functions = [
        function(0x1000 * n, 0x200, *begin, *((0x100 + n * k, n + k) for k in range(1, 4))) for n in range(1, 9)
    ]
    table = usual_table(3, AMD64, functions)
    result = compacted(table, never)
    assert result.sizes.divided < 0.7 * result.sizes.shared
    shared = [one for one in result.table.functions if len(one.rows) == len(begin)]
    assert [one.start for one in shared] == [one.start for one in functions]
    assert {one.rows_at for one in shared} == {shared[0].rows_at}
    rest = [one for one in result.table.functions if one not in shared]
    assert [(one.start, one.rows[0].start) for one in rest] == [
        (one.start + 0x100 + n, 0) for n, one in enumerate(functions, 1)
    ]
    decoded = [Section(encode(SectionSpec(0x10000, (one,))), 0x10000) for one in (table, result.table)]
    before, after = ([of_sframe(one) for one in listed_functions([section])] for section in decoded)
    assert prove(before, after, [], amd64.ARCH) == 8 * len(functions[0].rows)


def test_an_entry_gets_wider_addresses_only_if_that_is_smaller() -> None:
    rows = [(number, 8 * number + 8) for number in range(4)]
    table = usual_table(
        3, AMD64, [function(0x100 + 300 * n, 300, *((at, off + n) for at, off in rows)) for n in (0, 1)]
    )
    result = compacted(table, always)
    assert len(result.table.functions) == 1  # an entry of 21 bytes against 8 times one byte
    assert result.sizes.divided == 28 + 16 + 5 + 8 * (2 + 1 + 1) < result.sizes.shared
    equal = usual_table(3, AMD64, [function(0x100 + 300 * n, 300, *rows) for n in range(9)])
    result = compacted(equal, always)
    assert {one.rows_at for one in result.table.functions} == {0}  # several entries for one list of rows
    assert len(result.table.functions) == 3
    assert result.sizes.divided == 28 + 3 * 16 + 5 + 12 * (2 + 1 + 1) < result.sizes.shared == 28 + 9 * 16 + 5 + 4 * 3


def test_padding_is_reported_and_must_be_named_in_the_proof() -> None:
    table = usual_table(
        3, AMD64, [function(0x100, 10, (0, 8)), function(0x110, 16, (0, 16)), function(0x120, 4, (0, 8))]
    )
    result = compacted(table, always)
    assert result.padding == ((0x10A, 0x110),)
    decoded = [Section(encode(SectionSpec(0x1000, (one,))), 0x1000) for one in (table, result.table)]
    before, after = ([of_sframe(one) for one in listed_functions([section])] for section in decoded)
    assert prove(before, after, [], amd64.ARCH, set(result.padding)) == 3
    with pytest.raises(TranslationError, match="the result describes 0x10a to 0x110, no source does"):
        prove(before, after, [], amd64.ARCH)
    wrong = before[2]._replace(rules=before[1].rules)
    with pytest.raises(TranslationError, match="at 0x120 the source says"):
        prove([*before[:2], wrong], after, [], amd64.ARCH, set(result.padding))
