"""Aligns the cells of a table in columns, for all texts that show one."""

from __future__ import annotations

from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return one line per row, with left-aligned columns that are separated by two spaces.

    :param rows: rows with the same number of cells; the first one can hold the titles.
    """
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
