"""The database of a survey: a row for each file by its contents, for each kind of its functions, for each finding.

The rows of a file depend on its contents, on the :class:`~sframe_unwind.survey.rows.SurveyPlan` and on the version of
this package; the three are the key.  Paths are in a table of their own: several files may have the same contents.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_type_hints

from sframe_unwind import __version__
from sframe_unwind.errors import FileError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.survey.finding import Skipped
from sframe_unwind.survey.rows import FileRow, FindingRow, KindRow, ProfileRow, Surveyed, SurveyPlan

_VERSION = 1
"""Version of the database's format."""
_SQL_TYPES = {"int": "INTEGER", "str": "TEXT", "float": "REAL"}
DETAILS: dict[str, type[tuple[Any, ...]]] = {"kinds": KindRow, "findings": FindingRow, "profiles": ProfileRow}
"""The tables with several rows for a file."""
_MAX_INTEGER = (1 << 63) - 1
"""The largest integer of SQLite: addresses of kernels become negative, 2^64 less than they are."""


def _columns(row: type[tuple[Any, ...]]) -> str:
    return ", ".join(f'"{name}" {_SQL_TYPES[kind.__name__]} NOT NULL' for name, kind in get_type_hints(row).items())


_SCHEMA = f"""
CREATE TABLE plans (id INTEGER PRIMARY KEY, tool TEXT NOT NULL, plan TEXT NOT NULL, UNIQUE (tool, plan));
CREATE TABLE runs (id INTEGER PRIMARY KEY, plan INTEGER NOT NULL REFERENCES plans, started REAL NOT NULL, ended REAL,
    roots TEXT NOT NULL, workers TEXT NOT NULL);
CREATE TABLE files (id INTEGER PRIMARY KEY, plan INTEGER NOT NULL REFERENCES plans, digest TEXT NOT NULL,
    {_columns(FileRow)}, seconds REAL NOT NULL, peak INTEGER NOT NULL, UNIQUE (plan, digest));
CREATE TABLE paths (path TEXT PRIMARY KEY, root TEXT NOT NULL, digest TEXT NOT NULL, run INTEGER NOT NULL);
CREATE INDEX paths_of_digest ON paths (digest);
CREATE TABLE skipped (path TEXT NOT NULL, reason TEXT NOT NULL, files INTEGER NOT NULL, root TEXT NOT NULL,
    run INTEGER NOT NULL, PRIMARY KEY (path, reason));
""" + "".join(
    f"CREATE TABLE {name} (file INTEGER NOT NULL REFERENCES files, {_columns(row)});"
    f"CREATE INDEX {name}_of_file ON {name} (file);"
    for name, row in DETAILS.items()
)


class SurveyRun(NamedTuple):
    """The record of one run of a survey."""

    number: int
    plan: int
    """Its number in the table of plans."""


class Store:
    """A database of surveyed files.

    :param path: path of the file; it is created if it does not exist.
    :param new: whether it may be created.
    :raises FileError: it cannot be opened, or is not such a database.
    """

    def __init__(self, path: str, new: bool = True) -> None:
        self.path = path
        with self._errors():
            if not new and not Path(path).is_file():
                raise FileError(f"{path}: no such database")
            self._database = sqlite3.connect(path, isolation_level=None)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._prepare()

    def _prepare(self) -> None:
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        (tables,) = self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if not version and not tables:
            self._database.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {_VERSION}; COMMIT;")
        elif version != _VERSION:
            raise FileError(f"{self.path}: a database of another kind, or of another version of this program")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise FileError(f"{self.path}: {error}") from error
        except OSError as error:  # it is not known whether it exists
            raise FileError(f"{self.path}: {error.strerror or error}") from error

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def begin(self, plan: SurveyPlan, roots: Sequence[str], workers: str) -> SurveyRun:
        """Record that a run begins.

        :param workers: a description of the workers.
        """
        text = json.dumps(plan._asdict(), sort_keys=True)
        with self._errors():
            self._database.execute("INSERT OR IGNORE INTO plans (tool, plan) VALUES (?, ?)", (__version__, text))
            key = (__version__, text)
            (number,) = self._database.execute("SELECT id FROM plans WHERE tool = ? AND plan = ?", key).fetchone()
            values = (number, time.time(), json.dumps(list(roots)), workers)
            added = self._database.execute(
                "INSERT INTO runs (plan, started, roots, workers) VALUES (?, ?, ?, ?)", values
            )
            return SurveyRun(added.lastrowid or 0, number)

    def known(self, run: SurveyRun) -> set[str]:
        """Return the digests of the files that are done under the plan of a run."""
        with self._errors():
            return {digest for (digest,) in self._database.execute("SELECT digest FROM files WHERE plan = ?", run[1:])}

    def forget(self, run: SurveyRun) -> None:
        """Forget the results for all files under the plan of a run, so that they are examined again."""
        with self._errors(), self._transaction():
            for name in DETAILS:
                self._database.execute(
                    f"DELETE FROM {name} WHERE file IN (SELECT id FROM files WHERE plan = ?)", run[1:]
                )
            self._database.execute("DELETE FROM files WHERE plan = ?", run[1:])

    def add_path(self, run: SurveyRun, root: str, path: str, digest: str) -> None:
        """Record where contents were found."""
        values = (_text(path), _text(root), digest, run.number)
        with self._errors():
            self._database.execute("INSERT OR REPLACE INTO paths VALUES (?, ?, ?, ?)", values)

    def add_skipped(self, run: SurveyRun, root: str, skipped: Skipped) -> None:
        """Record files that were skipped."""
        values = (_text(skipped.path), skipped.reason, skipped.files, _text(root), run.number)
        with self._errors():
            self._database.execute("INSERT OR REPLACE INTO skipped VALUES (?, ?, ?, ?, ?)", values)

    def add(self, run: SurveyRun, digest: str, found: Surveyed) -> None:
        """Record the results for contents: all of them, or none if this is interrupted."""
        columns = ", ".join(f'"{name}"' for name in ("plan", "digest", *FileRow._fields, "seconds", "peak"))
        values = (run.plan, digest, *map(_value, found.file), found.seconds, found.peak)
        with self._errors(), self._transaction():
            added = self._database.execute(f"INSERT INTO files ({columns}) VALUES ({_places(values)})", values)
            for name in DETAILS:
                rows = [(added.lastrowid, *map(_value, row)) for row in getattr(found, name)]
                if rows:
                    self._database.executemany(f"INSERT INTO {name} VALUES ({_places(rows[0])})", rows)

    def end(self, run: SurveyRun, roots: Iterable[str]) -> None:
        """Record that a run is complete: files that it did not find below its roots do not exist any more."""
        with self._errors(), self._transaction():
            for root in roots:
                for table in ("paths", "skipped"):
                    self._database.execute(f"DELETE FROM {table} WHERE root = ? AND run != ?", (_text(root), run[0]))
            self._database.execute("UPDATE runs SET ended = ? WHERE id = ?", (time.time(), run.number))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    def last_plan(self) -> int:
        """Return the number of the plan of the last run.

        :raises FileError: there was no run.
        """
        found = next(self.rows("SELECT plan FROM runs ORDER BY id DESC LIMIT 1"), None)
        if found is None:
            raise FileError(f"{self.path}: nothing has been surveyed")
        return int(found[0])

    def rows(self, query: str, values: Sequence[object] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query."""
        with self._errors():
            yield from self._database.execute(query, values)

    def names_and_rows(self, query: str, values: Sequence[object] = ()) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Return the names of a query's columns, and its rows."""
        with self._errors():
            found = self._database.execute(query, values)
            return [column[0] for column in found.description], found.fetchall()


def _places(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _value(value: object) -> object:
    """Return a value in a form that SQLite accepts."""
    if isinstance(value, int):
        return value if value <= _MAX_INTEGER else value - (1 << 64)
    return _text(value) if isinstance(value, str) else value


def _text(text: str) -> str:
    """Return a text that can be encoded: names of files and symbols may have bytes that are not UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
