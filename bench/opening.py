"""Measures opening a section and the first lookup in it, for a program and for one of ten times its size."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Callable

from bench import program
from bench.report import SCALES, BenchError, Row, Target, Unavailable, medians, ratios
from bench.timing import alternate
from sframe_unwind import elf
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import Miss

PART = "open"
AT_MOST = Target(1.0)
"""Milliseconds."""
GROWTH = Target(1.3)
"""Target: the ratio of the times, for ten times as many functions."""
COPIES = 10
ROUNDS = 15
PER_ROUND = 20
"""Number of openings.  Each is followed by a lookup of another address, of the same functions in both programs."""


def rows() -> Iterator[Row]:
    """Measure with a file in the page cache, and with bytes in memory."""
    for version in (3, 2):
        try:
            small, large = (_Program(program.build(version, copies)) for copies in (1, COPIES))
        except Unavailable as error:
            yield Row(part=PART, what=f"version {version}", values=(), unit="", target=AT_MOST, detail=str(error))
            continue
        for source in ("file", "bytes"):
            times = alternate(ROUNDS, {"small": small.opening(source), "large": large.opening(source)})
            each = {name: [seconds / PER_ROUND for seconds in values] for name, values in times.items()}
            what = f"version {version}, from {source}"
            yield Row(
                PART,
                f"{what}: {small.size:,} functions",
                [seconds * SCALES["ms"] for seconds in each["small"]],
                "ms",
                AT_MOST,
            )
            yield Row(
                part=PART,
                what=f"{what}: {large.size:,} / {small.size:,}",
                values=ratios(each["large"], each["small"]),
                unit="x",
                target=GROWTH,
                detail=medians("ms", **each),
            )


class _Program:
    """A program, and the addresses to look up."""

    def __init__(self, path: Path) -> None:
        self._path = path
        section = elf.load(path, lazy=False)[0]
        starts, sizes = section.tables[0].extents()
        self.size = len(starts)
        self._address = section.address
        self._data = program.section_bytes(path)
        # The program is a sequence of copies of one object file; use the middle copy.
        first = self.size // program.FUNCTIONS // 2 * program.FUNCTIONS
        chosen = random.Random(0).sample(range(program.FUNCTIONS), PER_ROUND)
        self._addresses = [starts[first + index] + sizes[first + index] // 2 for index in chosen]

    def opening(self, source: str) -> Callable[[], None]:
        """Return the action to measure."""
        path, data, address = self._path, self._data, self._address

        def from_file() -> None:
            for pc in self._addresses:
                if isinstance(elf.load(path)[0].lookup(pc), Miss):
                    raise BenchError(f"{path}: {pc:#x} was not found")

        def from_bytes() -> None:
            for pc in self._addresses:
                if isinstance(Section(data, address).lookup(pc), Miss):
                    raise BenchError(f"{path}: {pc:#x} was not found")

        return from_file if source == "file" else from_bytes
