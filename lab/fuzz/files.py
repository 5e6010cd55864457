"""Fuzzes whole files with the commands dump, lookup, verify, lint, convert and backtrace.

A failure is an error that is not one line with a documented exit status, output with terminal control characters, a
page that a browser could not read, more than 5 seconds, or more than 500 MB.
"""

from __future__ import annotations

import functools
import re
import shutil
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from lab.fuzz.commands import check_page, quick, run
from lab.fuzz.file_fields import fields
from lab.fuzz.file_seeds import CORES, content_of, place_members, program
from lab.fuzz.file_seeds import seeds as seeds
from lab.fuzz.mutations import Mutator
from lab.fuzz.scratch import memory_folder
from lab.fuzz.seeds import Seed
from lab.fuzz.target import WrongAnswerError

SECONDS = 5.0
MEMORY = 500 << 20
"""Memory limit; the files have less than 10 MB."""

_ADDRESSES = [f"{address:#x}" for address in range(0x401000, 0x401100, 0x13)]
_ROW = re.compile(r"^    row \S+: (.*)", re.MULTILINE)
_ROW_OF_LINE = re.compile(r"^0x.*: (CFA .*|RA undefined)", re.MULTILINE)


@functools.cache
def _mutator() -> Mutator:
    return Mutator(seeds(), fields)


def made(number: int) -> Seed:
    """Return the input of a number: a file; the number itself decides how it is used."""
    return _mutator().mutate(Random(number))._replace(address=number)


@functools.cache
def _folder() -> Path:
    """Return a folder of this process in memory, with the files to which damaged ones refer."""
    folder = memory_folder()
    place_members(folder)
    for abi in CORES:
        shutil.copy(program(abi), folder / f"program-{abi}")
        producer = "gdb" if abi == "amd64" else "emulator"
        (folder / f"core-{abi}").write_bytes(content_of(f"core {producer} {abi}"))
    return folder


def exercise(seed: Seed, seen: Counter[str]) -> None:
    """Run the commands on one file.

    :param seen: counts the results.
    """
    with quick():
        _exercise(seed, seen)


def _exercise(seed: Seed, seen: Counter[str]) -> None:
    kind, abi = seed.name.split()[0], seed.name.split()[-1]
    folder = _folder()
    file, page = folder / "input", folder / "page.html"
    file.write_bytes(seed.data)
    if kind == "core":
        run(seen, "backtrace", "--core", file, "--exe", folder / f"program-{abi}", "--debug-dir", folder, *_json(seed))
        return
    run(seen, "verify", "-j1", "--html", page, file, *_json(seed))
    if page.exists():
        check_page(page.read_text(encoding="utf-8"))
        page.unlink()
    run(seen, "lint", file, *_json(seed))
    made = folder / "made"
    if kind in ("archive", "thin"):
        run(seen, "convert", file, "-o", made)
        made.unlink(missing_ok=True)
        return
    form = ("sframe", "debug_frame")[seed.address // 2 % 2]
    run(seen, "convert", "--to", form, file, "-o", made)
    made.unlink(missing_ok=True)
    run(seen, "dump", file, *_json(seed))
    _look_up(seen, file, folder / "addresses")
    if kind == "program" and abi in CORES:
        run(seen, "backtrace", "--core", folder / f"core-{abi}", "--exe", file, "--debug-dir", folder)


def _look_up(seen: Counter[str], file: Path, addresses: Path) -> None:
    """Look up names, and addresses as arguments and as lines of standard input, which must give the same results."""
    run(seen, "lookup", file, "first", "_start+4", ".text+0x2")
    status, answers = run(seen, "lookup", file, *_ADDRESSES)
    addresses.write_text("\n".join(_ADDRESSES), encoding="ascii")
    with addresses.open(encoding="ascii") as opened, pytest.MonkeyPatch.context() as changed:
        changed.setattr(sys, "stdin", opened)
        same, lines = run(seen, "lookup", file, "-")
    rows = [row.split() for row in _ROW.findall(answers)]
    if (same, [row.split() for row in _ROW_OF_LINE.findall(lines)]) != (status, rows):
        raise WrongAnswerError(f"lookup: status {status}, rows {rows}; from standard input: {same}, {lines}")
    seen["rows looked up"] += len(rows)


def _json(seed: Seed) -> list[str]:
    return ["--json"] if seed.address % 2 else []
