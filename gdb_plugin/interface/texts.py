"""Names of files and functions, whatever their bytes.

GDB decodes what it gives to Python by its host charset, and fails where a byte is not valid in it: in the locale ``C``,
which containers have, at every letter with an accent.
"""

from __future__ import annotations

import os

from sframe_unwind import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Callable


def text(get: Callable[[], str | None]) -> str:
    """Return a text of GDB's, empty where there is none.  Bytes that are not UTF-8 are escaped as surrogates.

    :param get: asks GDB for it.
    """
    try:
        return get() or ""
    except UnicodeDecodeError as error:
        return error.object.decode("utf-8", "surrogateescape")


def path_text(get: Callable[[], str | None]) -> str:
    """Return a path of GDB's, or a text with paths, in the form in which Python opens files; empty where there is none.

    In the locale ``C``, Python 3.14 in GDB takes names of files for ASCII, and older versions for UTF-8.

    :param get: asks GDB for it.
    """
    try:
        return get() or ""
    except UnicodeDecodeError as error:
        return os.fsdecode(error.object)


_NO_FILES = ("system-supplied DSO", "<<")
"""The beginnings of GDB's names of what is in memory only: the vDSO, and the images that a process has registered."""


def is_in_a_file(path: str) -> bool:
    """Return whether an object file of GDB's has a file, by its path."""
    return not path.startswith(_NO_FILES)


def path_of(file: object) -> str:
    """Return the path of an object file, program space or symbol table, empty where it has none."""
    return path_text(lambda: file.filename)  # type: ignore[attr-defined]
