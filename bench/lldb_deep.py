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
from sframe_unwind import elf

PART = "lldb-deep"
ROUNDS = 3
DEPTHS = (100, 1_000, 10_000, 100_000)
AT_MOST = Target(1.3)
"""With the plugin over LLDB without it."""
OVER_LEAST_AT_MOST = Target(1.15)
"""With the plugin over the shortest script that makes frames, where LLDB itself has only the innermost one."""
_ALONE = "SFrame alone"
_STRIPPED = "SFrame alone, a stripped program"
_MOST = 50_000
"""Number of frames that the plugin gives an LLDB that takes all frames at once (``lldb_plugin.lifecycle.planning``)."""
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
            place = _address_of("reached", programs[_ALONE])
            for depth in DEPTHS:
                yield _stripped(lldb, stripped, depth, place)
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


def _stripped(lldb: Lldb, program: Path, depth: int, place: int) -> Row:
    """Measure where all frames but the innermost one are a script's.

    :param place: address of the function at the end of the recursion.
    """
    takes_all = lldb.name.startswith("LLDB 22")
    frames = min(depth, _MOST) if takes_all else depth

    def seconds(plugin: bool, least: int) -> float:
        value: float = lldb.call(
            program, "deep", plugin=plugin, arguments=str(depth), place=place, least=least, takes_all=takes_all
        )
        return value

    measures = {"with": partial(seconds, True, 0), "least": partial(seconds, False, frames)}
    times = in_turns(ROUNDS, {**measures, "without": partial(seconds, False, 0)})
    return Row(
        part=PART,
        what=f"{lldb.name}, {_STRIPPED}, depth {depth:,}: the same: with / the least script",
        values=ratios(times["with"], times["least"]),
        unit="x",
        target=OVER_LEAST_AT_MOST,
        detail=medians("ms", **times),
    )


def _address_of(function: str, program: Path) -> int:
    with elf.opened(program) as binary:
        return next(symbol.address for symbol in binary.symbols if symbol.name == function)


def _overflow(lldb: Lldb, program: Path, kind: str) -> Row:
    def seconds() -> float:
        value: float = lldb.call(program, "deep", plugin=True, arguments="")
        return value

    times = in_turns(ROUNDS, {"with": seconds})
    return Row(PART, f"{lldb.name}, stack overflow, {kind}", times["with"], "s", OVERFLOW)
