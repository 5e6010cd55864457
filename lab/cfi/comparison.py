"""Compares this project's decoding of a file's call frame information with those of pyelftools and readelf."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from lab.cfi import tables
from sframe_unwind import elf


class Account(NamedTuple):
    """The result for one file."""

    functions: int
    rows: int
    excepted: tuple[str, ...]
    """For each function that pyelftools decodes wrongly, the error."""
    differences: tuple[str, ...]
    seconds: float
    """Seconds that this project's decoding took."""
    pyelftools_seconds: float


def compare(path: Path, readelf: Path | None) -> Account:
    """Compare one file.

    :param readelf: the program; ``None``: do not compare with it.
    """
    started = time.perf_counter()
    ours = tables.by_us(path)
    between = time.perf_counter()
    expected, defects = tables.by_pyelftools(path)
    seconds = between - started, time.perf_counter() - between
    found = {key: table for key, table in ours.items() if key not in defects}
    differences = _differences(path, "pyelftools", found, expected)
    if readelf is not None:
        with elf.opened(path) as binary:
            arch = binary.arch
        plain = {key: tables.without_undefined(table) for key, table in ours.items()}
        differences += _differences(path, "readelf", plain, tables.by_readelf(readelf, path, arch))
    return Account(len(ours), sum(map(len, ours.values())), tuple(defects.values()), tuple(differences), *seconds)


def _differences(path: Path, who: str, ours: tables.Tables, theirs: tables.Tables) -> list[str]:
    said = []
    for key in sorted({*ours, *theirs}):
        one, other = (tables.distinct(found[key]) if key in found else None for found in (ours, theirs))
        if one != other:
            said.append(f"{path}: {key[0]:#x} to {key[1]:#x}: ours {one}; {who} {other}")
    return said
