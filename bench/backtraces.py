"""Measures GDB's `bt` over a deep stack in the modes of the plugin, and `sframe compare`."""

from __future__ import annotations

from collections.abc import Iterator

from bench.debuggers import Gdb, all_gdbs
from bench.report import Row, Target, Unavailable, medians, ratios
from bench.sample import DEPTH_IN_DEBUGGERS, IN_DEBUGGERS, recursion

PART = "bt"
AT_MOST = Target(1.2)
"""Limit of the time in mode ``always`` divided by the time in mode ``off``."""
STRICT_AT_MOST = Target(1.6)
"""The same limit if each frame is SFrame's own."""
COMPARE_AT_MOST = Target(5)
"""Limit of the time of ``sframe compare``, which unwinds twice, divided by that of ``bt`` in mode ``off``."""
OUTERMOST_AT_MOST = Target(1.3)
"""The limit of mode ``always`` for ``bt -1`` of many frames."""
ROUNDS = 2
MANY = 50_000
VARIANTS = ("O2", "O0")
"""Optimised and unoptimised builds.  Without optimisation, GDB spends less time on arguments."""


def rows() -> Iterator[Row]:
    """Measure, and yield the rows of the table."""
    gdbs = all_gdbs()
    if not any(gdb.installed for gdb in gdbs):
        yield Row(part=PART, what="GDB from PyPI", values=(), unit="", target=AT_MOST, detail="not in this environment")
    for gdb in gdbs:
        for variant in VARIANTS:
            try:
                yield from _of(gdb, variant)
            except Unavailable as error:
                yield Row(
                    part=PART,
                    what=f"{gdb.name}, recursion {variant}",
                    values=(),
                    unit="",
                    target=AT_MOST,
                    detail=str(error),
                )


def _of(gdb: Gdb, variant: str) -> Iterator[Row]:
    times = gdb.call(recursion(variant), "backtraces", depth=DEPTH_IN_DEBUGGERS, rounds=ROUNDS, frames=IN_DEBUGGERS)
    for mode, meaning, target in (
        ("always", "mode always", AT_MOST),
        ("strict", "mode strict", STRICT_AT_MOST),
        ("compare", "sframe compare", COMPARE_AT_MOST),
        ("least", "the least in Python", None),
    ):
        yield Row(
            part=PART,
            what=f"{gdb.name}, recursion {variant}: {meaning} / off",
            values=ratios(times[mode], times["off"]),
            unit="x",
            target=target,
            detail=medians("ms", **{mode: times[mode], "off": times["off"]}),
        )
    if variant == VARIANTS[0]:
        times = gdb.call(recursion(variant), "outermost", depth=MANY * 4 // 5 + 100, rounds=ROUNDS, frames=MANY)
        what = f"{gdb.name}, recursion {variant}: bt -1 of {MANY:,} frames, mode always / off"
        yield Row(
            part=PART,
            what=what,
            values=ratios(times["always"], times["off"]),
            unit="x",
            target=OUTERMOST_AT_MOST,
            detail=medians("ms", **times),
        )
