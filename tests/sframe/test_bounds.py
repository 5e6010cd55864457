"""The cost of operations, counted in bytes fetched and rows decoded."""

from __future__ import annotations

import math
import os
import shutil
from collections import Counter
from pathlib import Path

import pytest

from sframe_unwind import elf
from sframe_unwind.errors import FormatError
from sframe_unwind.memory import LazyBytes
from sframe_unwind.report import dump
from sframe_unwind.sframe.constants import AbiNumber
from sframe_unwind.sframe.encode import FunctionSpec, RowSpec, SectionSpec, encode, usual_table
from sframe_unwind.sframe.fre import most_rows
from sframe_unwind.sframe.header import SIZES as HEADER_SIZES
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import Match
from tests.samples.build import build

ADDRESS, CODE = 0x10_0000, 0x100_0000
CHUNK = 64
SIZES = (10, 1_000, 30_000)
ROWS = tuple(RowSpec(4 * i, 0x02 | 1, (8 + 8 * i,)) for i in range(3))


class Fetched:
    """Returns the pieces of a section that are asked for, and counts them."""

    def __init__(self, count: int) -> None:
        functions = [FunctionSpec(CODE + 32 * i, 32, ROWS) for i in range(count)]
        table = usual_table(3, AbiNumber.AMD64_ENDIAN_LITTLE, functions)
        self._data = encode(SectionSpec(ADDRESS, (table,)))
        self.pieces: Counter[int] = Counter()
        self.bytes = 0

    def open(self) -> Section:
        return Section(LazyBytes(self._fetch, len(self._data), CHUNK), ADDRESS)

    def _fetch(self, offset: int, size: int) -> bytes:
        self.pieces[offset] += 1
        self.bytes += size
        return self._data[offset : offset + size]


@pytest.mark.parametrize("count", SIZES)
def test_opening_fetches_the_header(count: int) -> None:
    fetched = Fetched(count)
    fetched.open()
    # And the bytes after the table, which are to be zero.
    assert fetched.bytes <= 3 * CHUNK
    assert max(HEADER_SIZES.values()) <= CHUNK


@pytest.mark.parametrize("count", SIZES)
def test_a_lookup_fetches_what_a_binary_search_does(count: int) -> None:
    fetched = Fetched(count)
    section = fetched.open()
    before = sum(fetched.pieces.values())
    match = section.lookup(CODE + 32 * (count // 3) + 5)
    assert isinstance(match, Match)
    assert match.rule.cfa is not None
    assert match.rule.cfa.offset == 16
    # An entry for each step of the search, and at the end the function's own, its attributes and rows.
    assert sum(fetched.pieces.values()) - before <= math.ceil(math.log2(count)) + 4
    assert max(fetched.pieces.values()) == 1
    again = sum(fetched.pieces.values())
    section.lookup(CODE + 32 * (count // 3) + 9)
    assert sum(fetched.pieces.values()) == again


def test_functions_that_claim_the_same_rows_do_not_multiply_the_dump() -> None:
    """A hundred functions, each with all rows of the section: a dump of all would be a hundred sections long."""
    rows = tuple(RowSpec(i, 0x02 | 1, (8,)) for i in range(200))
    functions = [FunctionSpec(CODE + 256 * i, 256, rows, rows_at=0) for i in range(100)]
    data = encode(SectionSpec(ADDRESS, (usual_table(3, AbiNumber.AMD64_ENDIAN_LITTLE, functions),)))
    refused: list[FormatError] = []
    text = "".join(dump.to_text([Section(data, ADDRESS)], refused.append))
    assert text.count("sp+8") <= most_rows(605, 100)
    assert len(refused) > 80
    assert "they claim the same rows over and over" in str(refused[0])


def test_of_a_large_file_only_parts_are_read(tmp_path: Path) -> None:
    """Opening a file of a gigabyte reads only parts of it; the kernel counts the bytes."""
    copy = Path(shutil.copy(build("free_walk"), tmp_path))
    os.truncate(copy, 1 << 30)
    assert bytes_read(copy) <= 1 << 16


def bytes_read(path: Path) -> int:
    """Return how many bytes this process reads to open a file's section and find one function."""

    def count() -> int:
        return int(Path("/proc/self/io").read_text(encoding="ascii").split()[1])

    before = count()
    (section,) = elf.load(path)
    assert section.find(next(section.functions()).start) is not None
    return count() - before
