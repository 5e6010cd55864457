"""Lets one survey at a time write to a database."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Callable

from sframe_unwind.errors import FileError


@contextmanager
def reserved(path: str, report: Callable[[str], None]) -> Iterator[None]:
    """Reserve a database for one survey; if another one has it, wait until that has ended.

    The results of the other survey are then known, so files are not examined twice.  The reservation ends with the
    process, however that ends.  The file must stay open as long as the database is: closing it would release the locks
    of SQLite, too.

    :param path: path of the database; it is created, empty, if it does not exist.
    :param report: called with one line before waiting.
    :raises FileError: it cannot be opened or created.
    """
    with _opened(path) as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"{path}: another survey writes to it: waiting for its end")
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _opened(path: str) -> BinaryIO:
    try:
        return Path(path).open("ab")
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from error
