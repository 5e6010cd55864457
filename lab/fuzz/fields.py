"""Locates the fields of a section, so a mutation can change one in the section's byte order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lab.fuzz.seeds import Seed
from sframe_unwind.address import ByteOrder
from sframe_unwind.sframe import fre
from sframe_unwind.sframe.header import FDE_SIZES
from sframe_unwind.sframe.raw import ATTRIBUTE_SIZE
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import Table


class Field(NamedTuple):
    """One number in a section."""

    offset: int
    size: int
    byteorder: ByteOrder


# (specification 2.1 to 2.3) each field's offset in its record, and its size.
_HEADER = ((0, 2), (2, 1), (3, 1), (4, 1), (5, 1), (6, 1), (7, 1), (8, 4), (12, 4), (16, 4), (20, 4), (24, 4))
_FDE = {
    1: ((0, 4), (4, 4), (8, 4), (12, 4), (16, 1)),
    2: ((0, 4), (4, 4), (8, 4), (12, 4), (16, 1), (17, 1), (18, 2)),
    3: ((0, 8), (8, 4), (12, 4)),
}
_ATTRIBUTES = ((0, 2), (2, 1), (3, 1), (4, 1))


def fields(seed: Seed) -> tuple[Field, ...]:
    """Return all fields of an undamaged section."""
    section = Section(seed.data, seed.address)
    return tuple(field for table in section.tables for field in _of_table(table))


def _of_table(table: Table) -> Iterator[Field]:
    head = table.header
    rows_at = table.offset + head.fres_start

    def record(offset: int, layout: tuple[tuple[int, int], ...]) -> Iterator[Field]:
        return (Field(offset + at, size, head.byteorder) for at, size in layout)

    yield from record(table.offset, _HEADER)
    for function in table.functions():
        entry = table.offset + head.fdes_start + function.number * FDE_SIZES[head.version]
        yield from record(entry, _FDE[head.version])
        position = rows_at + function.fde.rows_offset
        if head.version == 3:
            yield from record(position - ATTRIBUTE_SIZE, _ATTRIBUTES)
        address_size = function.fde.address_size
        for _, row in table.raw_rows(function):
            yield Field(position, address_size, head.byteorder)
            info = position + address_size
            yield Field(info, 1, head.byteorder)
            word = fre.word_size(row[0])
            for at in range(info + 1, info + len(row), word):
                yield Field(at, word, head.byteorder)
            position = info + len(row)
