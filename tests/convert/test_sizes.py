"""The sizes in ``docs/size.md`` are measured on sections that are read back."""

from __future__ import annotations

import math

import pytest

from lab.cfi.libraries import FOLDERS
from lab.convert.layouts import LAYOUTS, Layout, lookup, write
from lab.convert.sizes import measure
from sframe_unwind.sframe.constants import AbiNumber, PcType
from sframe_unwind.sframe.encode import FunctionSpec, RowSpec, usual_table
from tests.missing import absent

ROWS = (RowSpec(0, 0x03, (8,)), RowSpec(4, 0x03, (16,)))
FUNCTIONS = (
    FunctionSpec(0x1000, 16, ROWS),
    FunctionSpec(0x1010, 64, ROWS, pc_type=PcType.MASK, repetition_size=16),
    FunctionSpec(0x2000, 300, (ROWS[0], RowSpec(299, 0x25, (400, -16)))),
)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_a_layout_gives_the_rows_that_were_written(layout: Layout) -> None:
    written = write(usual_table(3, AbiNumber.AMD64_ENDIAN_LITTLE, FUNCTIONS), layout)
    found = {pc: lookup(written, pc) for pc in (0xFFF, 0x1003, 0x1004, 0x104F, 0x1050, 0x2000, 0x212A, 0x212B, 0x212C)}
    first, second, last = ((row.info, row.words) for row in (*ROWS, FUNCTIONS[2].rows[1]))
    assert list(found.values()) == [None, first, second, second, None, first, first, last, None]


def test_more_shapes_than_the_dictionary_holds() -> None:
    rows = tuple(RowSpec(number, 0x23, (number,)) for number in range(300))
    table = usual_table(3, AbiNumber.AMD64_ENDIAN_LITTLE, [FunctionSpec(0x1000, 300, rows)])
    written = write(table, LAYOUTS[0])
    assert len(written.shapes) == 255
    assert [lookup(written, 0x1000 + number) for number in range(300)] == [(row.info, row.words) for row in rows]


@pytest.mark.parametrize("machine", ["amd64", "s390x"])
def test_sizes_of_a_library(machine: str) -> None:
    path = FOLDERS[machine] / "libnsl.so.1"
    if not path.exists():
        absent(f"{path} is not installed: the sizes stay unchecked")
    sizes = measure(path, 8).sizes
    dictionary, index, both = sizes.layouts
    assert sizes.plain > sizes.shared > sizes.divided > max(dictionary, index)
    assert min(dictionary, index) > both > sizes.entropy > 0
    again = measure(path, 255).sizes
    assert again.plain == sizes.plain
    assert again.divided <= sizes.divided
    assert math.isclose(again.entropy, sizes.entropy, rel_tol=0.1)
