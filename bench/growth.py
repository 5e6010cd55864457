"""Measures how the time of whole commands grows with their input: programs of 1, 2, 4 and 8 times as many functions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bench import program
from bench.processes import COMMAND, processor_time
from bench.report import Row, Target, Unavailable, medians, ratios
from bench.timing import in_turns

PART = "growth"
ROUNDS = 3
SIZES = (1, 2, 4, 8)
"""Multiples of the functions of the smallest program."""
GROWTH = Target(1.1)
"""Limit of the time of the largest program divided by that of the smallest one and by the ratio of their sizes."""


def rows() -> Iterator[Row]:
    """Measure whole processes."""
    for name in ("verify", "dump"):
        try:
            yield _growth(name)
        except Unavailable as error:
            yield Row(part=PART, what=name, values=(), unit="x", target=GROWTH, detail=str(error))


def _growth(name: str) -> Row:
    """Measure a command on programs of several sizes."""
    paths = {size: program.build(3, copies=size) for size in SIZES}
    times = in_turns(
        ROUNDS, {str(size): partial(processor_time, (*COMMAND, name, str(path))) for size, path in paths.items()}
    )
    smallest, largest = str(SIZES[0]), str(SIZES[-1])
    return Row(
        part=PART,
        what=f"{name}: growth from {program.FUNCTIONS:,} to {program.FUNCTIONS * SIZES[-1]:,} functions",
        values=[one / (SIZES[-1] / SIZES[0]) for one in ratios(times[largest], times[smallest])],
        unit="x",
        target=GROWTH,
        detail=medians("s", **times),
    )
