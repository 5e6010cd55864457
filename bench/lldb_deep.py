"""Measures LLDB at the end of a deep recursion, with and without the plugin."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench.compiling import compiled
from bench.debuggers import TIMEOUT
from bench.lldbs import Lldb, all_lldbs
from bench.processes import COMMAND
from bench.report import Row, Target, Unavailable, medians, ratios
from bench.timing import in_turns

PART = "lldb-deep"
ROUNDS = 3
DEPTHS = (100, 1_000, 10_000, 100_000)
AT_MOST = Target(1.3)
"""With the plugin over LLDB without it."""
_ALONE = "SFrame alone"
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
            programs = _programs(Path(name))
            stripped = compiled("deep.c", Path(name) / "stripped", "-DALONE", "-s")
        except Unavailable as error:
            yield Row(part=PART, what="a deep recursion", values=(), unit="", target=AT_MOST, detail=str(error))
            return
        for lldb in lldbs:
            for kind, program in programs.items():
                for depth in DEPTHS:
                    yield _deep(lldb, program, kind, depth)
            for kind, path in (("symbols", programs[_ALONE]), ("a stripped program", stripped)):
                yield _overflow(lldb, path, kind)


def _programs(folder: Path) -> dict[str, Path]:
    """Return programs, by what describes the functions of the recursion.

    :raises Unavailable: the tools cannot be had, or fail.
    """
    recursion = compiled("deep.c", folder / "recursion.o", "-g", "-c", "-DALONE", "-DRECURSION")
    described = compiled("deep.c", folder / "described", "-g", sframe=False)
    converted = folder / "converted"
    command = [*COMMAND, "convert", str(described), "--from", "dwarf", "-o", str(converted)]
    subprocess.run(command, check=True, timeout=TIMEOUT, stdout=subprocess.DEVNULL)
    return {
        _ALONE: compiled("deep.c", folder / "deep", "-g", "-DALONE"),
        "SFrame, and main by CFI": compiled("deep.c", folder / "partly", "-g", "-DMAIN", str(recursion)),
        "CFI, and SFrame converted from it": converted,
    }


def _deep(lldb: Lldb, program: Path, kind: str, depth: int) -> Row:
    def seconds(plugin: bool) -> float:
        value: float = lldb.call(program, "deep", plugin=plugin, arguments=str(depth))
        return value

    times = in_turns(ROUNDS, {"with": partial(seconds, True), "without": partial(seconds, False)})
    what = f"{lldb.name}, {kind}, depth {depth:,}: run to a breakpoint, next, bt 20: with / no plugin"
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
