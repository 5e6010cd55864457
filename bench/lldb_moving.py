"""Moving a C program in LLDB without the plugin, in mode off and in mode always: scripts, conditions, libraries."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench.compiling import driving_with_libraries
from bench.lldbs import Lldb, all_lldbs
from bench.report import Row, Target, Unavailable, medians, ratios
from bench.timing import in_turns

PART = "lldb-move"
ROUNDS = 7
LIBRARIES = 240
AT_MOST = Target(1.3)
"""Mode ``always`` over LLDB without the plugin."""
SCRIPT_AT_MOST = Target(1.2)
OFF = Target(1.05)
"""Mode ``off`` over LLDB without the plugin."""
_WITHOUT = ("without", "again")
"""LLDB without the plugin is measured twice in each round: how far both differ tells what a ratio is worth."""


class Work(NamedTuple):
    """The actions of one measurement, which have a separate session for each mode."""

    what: str
    name: str
    """The name of the actions for :func:`bench.in_lldb.moving`."""
    times: int
    arguments: str
    target: Target = AT_MOST


_WORK = (
    Work("a script with 400 stops that reads all frames", "script", 400, "20 1000000", SCRIPT_AT_MOST),
    Work("a condition, 1,000 hits at depth 1,000", "condition", 1_000, "1000 500"),
    Work("an ignore count, 1,000 hits at depth 1,000", "ignore", 1_000, "1000 500"),
    Work("200 stepi at depth 1,000", "stepi", 200, "1000 1000000"),
    Work(f"{LIBRARIES} dlopens with a stop after each", "loads", LIBRARIES, f"load . {LIBRARIES}"),
)


def rows() -> Iterator[Row]:
    """Measure CPU seconds of LLDB; each round is a session of its own for each mode."""
    lldbs = all_lldbs()
    if not lldbs:
        yield Row(
            part=PART, what="LLDB from PyPI", values=(), unit="", target=AT_MOST, detail="not in this environment"
        )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            driving_with_libraries(folder, LIBRARIES)
        except Unavailable as error:
            yield Row(part=PART, what="moving a program", values=(), unit="", target=AT_MOST, detail=str(error))
            return
        for lldb in lldbs:
            for work in _WORK:
                yield from _of(lldb, work, folder)


def _of(lldb: Lldb, work: Work, folder: Path) -> Iterator[Row]:
    def seconds(mode: str) -> float:
        value: float = lldb.call(
            folder / "driving",
            "moving",
            plugin=mode not in _WITHOUT,
            settings=(f"sframe mode {mode}",),
            work=work.name,
            count=work.times,
            program_arguments=work.arguments.replace(" . ", f" {folder} "),
        )
        return value

    times = in_turns(ROUNDS, {mode: partial(seconds, mode) for mode in (*_WITHOUT, "off", "always")})
    what = f"{lldb.name}, {work.what}"
    always, off, again = (ratios(times[mode], times["without"]) for mode in ("always", "off", "again"))
    yield Row(
        part=PART,
        what=f"{what}: mode always / no plugin",
        values=always,
        unit="x",
        target=work.target,
        detail=medians("ms", **times),
    )
    yield Row(PART, f"{what}: mode off / no plugin", off, "x", OFF)
    yield Row(PART, f"{what}: no plugin, again / no plugin", again, "x")
