"""The results of measurements, and the table that shows them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Unavailable(Exception):  # noqa: N818 - it names a state of the machine
    """A measurement cannot run on this machine; the message is one line."""


class BenchError(Exception):
    """A measured operation returned a wrong result, so its time is meaningless; the message is one line."""


class Target(NamedTuple):
    """A limit that a value must not exceed, or must reach."""

    limit: float
    at_least: bool = False

    def met_by(self, value: float) -> bool:
        """Return whether a value meets the limit."""
        return value >= self.limit if self.at_least else value <= self.limit


class Row(NamedTuple):
    """One line of the table: a value with its spread and details."""

    part: str
    what: str
    values: Sequence[float]
    """One value for each round, of which the median is shown; empty: not measured."""
    unit: str
    target: Target | None = None
    """``None``: the line is for reference."""
    detail: str = ""
    """The medians from which a ratio or difference was computed, or the reason why there are none."""

    @property
    def value(self) -> float:
        """The median of the values."""
        return statistics.median(self.values)

    @property
    def verdict(self) -> str:
        """``pass``, ``over``, ``not measured``, or nothing for a reference."""
        if not self.values:
            return "not measured"
        if self.target is None:
            return ""
        return "pass" if self.target.met_by(self.value) else "over"


def ratios(values: Iterable[float], peers: Iterable[float]) -> list[float]:
    """Return the quotients of two series of measurements, round by round."""
    return [value / peer for value, peer in zip(values, peers)]


def medians(unit: str, **seconds: Sequence[float]) -> str:
    """Return the medians of several times with their names, for the details of a row."""
    scale = SCALES[unit]
    return ", ".join(f"{name} {number(statistics.median(times) * scale)} {unit}" for name, times in seconds.items())


SCALES = {"s": 1.0, "ms": 1e3, "µs": 1e6}
"""By unit of time, the number of units in a second."""

_HEAD = ("part", "what", "median", "min", "max", "", "target", "", "made of")


def table(rows: Sequence[Row]) -> list[str]:
    """Return the lines of the table."""
    cells = [_HEAD, *map(_cells, rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_HEAD))]
    numbers = {_HEAD.index(name) for name in ("median", "min", "max", "target")}
    return [
        "  ".join(
            cell.rjust(width) if column in numbers else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths))
        ).rstrip()
        for line in cells
    ]


def _cells(row: Row) -> tuple[str, ...]:
    if not row.values:
        return (row.part, row.what, "", "", "", "", _limit(row), row.verdict, row.detail)
    spread = (row.value, min(row.values), max(row.values))
    return (row.part, row.what, *map(number, spread), row.unit, _limit(row), row.verdict, row.detail)


def _limit(row: Row) -> str:
    if row.target is None:
        return "reference"
    return f"{'>=' if row.target.at_least else '<='} {row.target.limit:g}"


def number(value: float) -> str:
    """Return a value with three or four digits."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) < 1 else f"{value:.4g}"
