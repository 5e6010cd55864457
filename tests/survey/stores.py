"""Databases of surveys, and their contents."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sframe_unwind.survey.bounds import Bounds
from sframe_unwind.survey.judging import judge
from sframe_unwind.survey.rows import NOTHING, FileRow, Surveyed, SurveyPlan
from sframe_unwind.survey.running import Done, Survey, Work, Workers, local_workers
from sframe_unwind.survey.store import Store

CONVERT = SurveyPlan(convert=True)

_NOT_COMPARED = ("id", "file", "run", "seconds", "peak", "plan")
"""Columns that depend on the order of the work, or on the machine."""


def quick(data: bytes, _: SurveyPlan) -> Surveyed:
    """Return a result without any work."""
    return Surveyed(FileRow(NOTHING, bytes=len(data)))


def survey(
    path: Path,
    *roots: Path,
    plan: SurveyPlan = CONVERT,
    jobs: int = 2,
    work: Work = judge,
    workers: Workers | None = None,
) -> Done:
    """Survey into a database."""
    store = Store(str(path))
    try:
        names = list(map(str, roots))
        run = store.begin(plan, names, "")
        return Survey(store, run, Bounds()).survey(names, workers or local_workers(plan, jobs, work=work))
    finally:
        store.close()


def query(path: Path, text: str) -> list[tuple[Any, ...]]:
    """Return the rows that a query of a database gives."""
    database = sqlite3.connect(path)
    try:
        return database.execute(text).fetchall()
    finally:
        database.close()


def contents(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return the contents of a database, except what depends on the order of the work or the machine."""
    result = {}
    for table in ("files", "paths", "skipped", "kinds", "findings", "profiles"):
        columns = [row[1] for row in query(path, f"PRAGMA table_info({table})") if row[1] not in _NOT_COMPARED]
        names = ", ".join(f'{table}."{column}"' for column in columns)
        joined = "" if table in ("files", "paths", "skipped") else "JOIN files ON files.id = file"
        digest = ", files.digest" if joined else ""
        result[table] = sorted(query(path, f"SELECT {names}{digest} FROM {table} {joined}"))
    return result


def states(path: Path) -> Sequence[tuple[str, str, int]]:
    """Return state, reason and number of the files."""
    return query(path, "SELECT state, why, count(*) FROM files GROUP BY state, why ORDER BY state, why")


def files_in(database: Path) -> int:
    """Return the number of files in a database that may just be made."""
    try:
        return len(query(database, "SELECT * FROM files"))
    except Exception:  # noqa: BLE001  # there is no table yet, or no database
        return 0
