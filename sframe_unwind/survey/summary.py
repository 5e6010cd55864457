"""Summarises a survey in a few lines of text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sframe_unwind.internal_error import PREFIX
from sframe_unwind.report.columns import aligned
from sframe_unwind.survey.store import Store
from sframe_unwind.survey.tables import TABLES, Table, read

_SHOWN = ("machines", "states", "not_interpreted", "reasons", "consumers", "skipped_reasons")
_MOST = 8
"""Maximum number of rows that are shown of a table."""
_LONGEST = 60
"""Maximum number of characters of a cell."""


def lines(store: Store, plan: int) -> Iterator[str]:
    """Yield a summary of the results under a plan."""
    for table in TABLES:
        if table.name in _SHOWN:
            yield from _table(store, table, plan)


def _table(store: Store, table: Table, plan: int) -> Iterator[str]:
    names, rows = read(store, table, plan)
    if not rows:
        return
    yield f"{table.title}:"
    if len(names) > len(rows) * 2 and len(names) > _MOST:  # a wide table is transposed
        cells = [[name, *(shown(row[column]) for row in rows)] for column, name in enumerate(names)]
    else:
        cells = [names, *(list(map(shown, row)) for row in rows[:_MOST])]
    yield from (f"  {line}" for line in aligned([[name.replace("_", " ") for name in cells[0]], *cells[1:]]))
    if len(rows) > _MOST and cells[0] == names:
        yield f"  ... {len(rows) - _MOST} more (--html, --csv and --json-lines have all)"


def shown(value: Any) -> str:
    """Return a cell as text."""
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def internal_errors(store: Store, plan: int) -> list[tuple[str, str]]:
    """Return path and message of each file at which a bug of this package ended the work."""
    found = "SELECT path, why FROM files JOIN paths USING (digest) WHERE plan = ? AND substr(why, 1, ?) = ?"
    return sorted((str(path), str(why)) for path, why in store.rows(found, (plan, len(PREFIX), PREFIX)))


def is_wrong(store: Store, plan: int) -> bool:
    """Return whether the code shows a rule of a file to be wrong, or the file's two tables disagree."""
    wrong = "SELECT count(*) FROM files JOIN paths USING (digest) WHERE plan = ? AND"
    return any(count for (count,) in store.rows(f"{wrong} sframe_wrong + dwarf_wrong + disagreements > 0", (plan,)))
