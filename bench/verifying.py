"""Measures the comparison of SFrame with DWARF unwind data, against pyelftools decoding the latter only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench import program
from bench.decoding import decode_dwarf
from bench.memory import peak
from bench.report import BenchError, Row, Target, Unavailable, medians, ratios
from bench.timing import alternate
from sframe_unwind.verify import verify

PART = "verify"
SLOWER = Target(0.3)
MEMORY = Target(100)
ROUNDS = 3

_VERIFY = """
import sys
from sframe_unwind.verify import verify
verify(sys.argv[1])
"""
_TIMEOUT = 300


def rows() -> Iterator[Row]:
    """Measure the time from opening the file to the verdict, and the peak memory of a separate process."""
    what = f"{program.FUNCTIONS:,} functions"
    try:
        path = program.build(3)
    except Unavailable as error:
        yield Row(part=PART, what=what, values=(), unit="", target=SLOWER, detail=str(error))
        return
    times = alternate(ROUNDS, {"verify": lambda: _verify(path), "pyelftools": lambda: decode_dwarf(path)})
    slower = ratios(times["verify"], times["pyelftools"])
    yield Row(
        part=PART,
        what=f"{what}: verify / pyelftools",
        values=slower,
        unit="x",
        target=SLOWER,
        detail=medians("s", **times),
    )
    yield Row(PART, f"{what}: peak memory", [peak(_VERIFY, path, _TIMEOUT) * 1024 / 1e6], "MB", MEMORY)


def _verify(path: Path) -> None:
    verdict = verify(path)
    if verdict.both != program.FUNCTIONS or verdict.disagreements:
        found = f"{verdict.both} functions and {len(verdict.disagreements)} disagreements"
        raise BenchError(f"{path}: {found}, expected {program.FUNCTIONS} and none")
