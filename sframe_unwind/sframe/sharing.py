"""Lets functions with equal rows refer to one copy of them."""

from __future__ import annotations

from collections.abc import Mapping

from sframe_unwind.sframe.encode import TableSpec, function_rows
from sframe_unwind.sframe.fre import MAX_SHARED_ROWS


def with_shared_rows(table: TableSpec) -> TableSpec:
    """Return a table whose functions refer to the same bytes of the FRE sub-section if their own are equal.

    In versions 1 and 2, an FDE has its attributes and the number of its rows, so a function can also refer to the
    first rows of another.  In version 3, the attribute record before the rows must also be equal.

    :raises EncodeError: a function cannot be encoded.
    """
    blobs = [function_rows(table, one, f"function at {one.start:#x}") for one in table.functions]
    # Longer lists are not shared: this keeps the section within this project's limit for shared rows.
    longest = _longest({blob for one, blob in zip(table.functions, blobs) if len(one.rows) <= MAX_SHARED_ROWS})
    places: dict[bytes, int] = {}
    functions, end = [], 0
    for one, blob in zip(table.functions, blobs):
        shared = longest.get(blob) if len(one.rows) <= MAX_SHARED_ROWS else None
        at = end if shared is None else places.setdefault(shared, end)
        if at == end:
            end += len(blob if shared is None else shared)
        functions.append(one._replace(rows_at=at))
    return table._replace(functions=tuple(functions))


def _longest(blobs: set[bytes]) -> Mapping[bytes, bytes]:
    """Return, for each byte string, the longest one that begins with it."""
    longest: dict[bytes, bytes] = {}
    following = None
    # In sorted order, the strings that begin with a string directly follow it.
    for blob in sorted(blobs, reverse=True):
        longest[blob] = longest[following] if following is not None and following.startswith(blob) else blob
        following = blob
    return longest
