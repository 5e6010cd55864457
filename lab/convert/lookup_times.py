"""Measures lookups in sections of several layouts for the same code, by a reader in C."""

from __future__ import annotations

import random
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lab.convert.layouts import ENTRY, SHORT_ENTRY, Row, Written, lookup, packed
from sframe_unwind.sframe.encode import TableSpec
from tests.hanging import HANG

_READER = Path(__file__).with_name("layout_lookup.c")
_HEAD = struct.Struct("<qIIII")
_SECONDS = HANG
_ROUNDS = 15


def addresses(table: TableSpec, count: int) -> list[int]:
    """Return addresses of code that a table describes, the same ones each time."""
    chosen = random.Random(0)
    functions = [one for one in table.functions if one.size]
    picked = chosen.choices(functions, [one.size for one in functions], k=count)
    return [one.start + chosen.randrange(one.size) for one in picked]


def nanoseconds(sections: Sequence[Written], pcs: Sequence[int]) -> list[float]:
    """Return the time of a lookup in each section: processor time, the best of 15 rounds.

    :raises AssertionError: the reader in C finds another row than the one in Python, or another one in another section.
    """
    with tempfile.TemporaryDirectory() as folder:
        reader = Path(folder, "layout_lookup")
        subprocess.run(["gcc", "-O2", "-o", str(reader), str(_READER)], check=True, timeout=_SECONDS)
        paths = [Path(folder, str(number)) for number in range(len(sections))]
        for path, section in zip(paths, sections):
            path.write_bytes(_file(section))
        command = [str(reader), str(_ROUNDS), *map(str, paths)]
        lines = "\n".join(map(str, pcs))
        done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=_SECONDS, check=False)
    assert done.returncode == 0, f"the reader in C ends with status {done.returncode}"
    times, *rows = done.stdout.splitlines()
    assert rows == [_shown(lookup(sections[0], pc)) for pc in pcs]
    return [float(time) for time in times.split()]


def _file(section: Written) -> bytes:
    """Return a section in the reader's form."""
    layout = section.layout
    size = SHORT_ENTRY if layout.short_index else ENTRY
    head = section.first, layout.dictionary, layout.short_index, len(section.shapes), len(section.entries) // size
    return _HEAD.pack(*head) + b"".join(section.shapes) + section.entries + section.rows


def _shown(row: Row | None) -> str:
    return "-" if row is None else packed(*row).hex()
