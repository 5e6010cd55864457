"""Measures LLDB at the end of a deep recursion that only SFrame describes, with and without the plugin."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench.compiling import compiled
from bench.lldbs import Lldb, all_lldbs
from bench.report import Row, Target, Unavailable, medians, ratios
from bench.timing import in_turns

PART = "lldb-deep"
ROUNDS = 3
DEPTHS = (100, 1_000, 10_000, 100_000)
AT_MOST = Target(1.3)
"""With the plugin over LLDB without it."""
OVERFLOW = Target(2.0)
"""Processor seconds from the start of a program to the display of its stack overflow."""


def rows() -> Iterator[Row]:
    """Measure processor seconds of LLDB; each round is a session of its own."""
    lldbs = all_lldbs()
    if not lldbs:
        yield Row(
            part=PART, what="LLDB from PyPI", values=(), unit="", target=AT_MOST, detail="not in this environment"
        )
    with tempfile.TemporaryDirectory() as name:
        try:
            program = compiled("deep.c", Path(name) / "deep", "-g", "-DALONE")
            stripped = compiled("deep.c", Path(name) / "stripped", "-DALONE", "-s")
        except Unavailable as error:
            yield Row(part=PART, what="a deep recursion", values=(), unit="", target=AT_MOST, detail=str(error))
            return
        for lldb in lldbs:
            for depth in DEPTHS:
                yield _deep(lldb, program, depth)
            for kind, path in (("symbols", program), ("a stripped program", stripped)):
                yield _overflow(lldb, path, kind)


def _deep(lldb: Lldb, program: Path, depth: int) -> Row:
    def seconds(plugin: bool) -> float:
        value: float = lldb.call(program, "deep", plugin=plugin, arguments=str(depth))
        return value

    times = in_turns(ROUNDS, {"with": partial(seconds, True), "without": partial(seconds, False)})
    what = f"{lldb.name}, depth {depth:,}: run to a breakpoint, next, bt 20: with / no plugin"
    return Row(
        part=PART,
        what=what,
        values=ratios(times["with"], times["without"]),
        unit="x",
        target=AT_MOST,
        detail=medians("ms", **times),
    )


def _overflow(lldb: Lldb, program: Path, kind: str) -> Row:
    def seconds() -> float:
        value: float = lldb.call(program, "deep", plugin=True, arguments="")
        return value

    times = in_turns(ROUNDS, {"with": seconds})
    return Row(PART, f"{lldb.name}, stack overflow, {kind}", times["with"], "s", OVERFLOW)
