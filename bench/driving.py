"""Moving a program in GDB: stepping, conditions of breakpoints, loading of libraries, many threads."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench.compiling import compiled, driving_with_libraries
from bench.debuggers import Gdb, all_gdbs
from bench.report import Row, Target, Unavailable, medians, ratios
from bench.timing import in_turns

PART = "drive"
ROUNDS = 2
THREADS, FRAMES = 400, 25
LIBRARIES = 200
DEPTH = 20
"""Frames below those that are stepped in."""
AT_MOST = Target(1.3)
"""Mode ``always`` over mode ``off``."""
STEPPING = Target(1.2)
"""The same for commands that step, each of which is a stop."""
ON_CALLERS = Target(2.0)
"""The same for a condition that looks at callers: it is Python of GDB's, which asks for frames at each hit."""
OFF = Target(1.1)
"""Mode ``off`` over GDB without the plugin."""
RELOADING = Target(1.1)
"""Mode ``auto`` over GDB without the plugin, where a library with SFrame comes and goes."""
SLEEPING = Target(1.02)
"""The same in a program without SFrame."""
RELOADS = 100


class Work(NamedTuple):
    """The actions of one measurement, which have a separate session for each mode."""

    what: str
    name: str
    """The name of the actions in :mod:`bench.in_gdb_driving`."""
    times: int
    program: str
    arguments: str
    stop_at: str = "step"
    expected: str = "main ("
    target: Target = AT_MOST


_LONG = f"{DEPTH} 1000000"
_HITS = 8_000
_WORK = (
    Work("800 stepi", "stepi", 800, "driving", _LONG, target=STEPPING),
    Work("200 next", "next", 200, "driving", _LONG, target=STEPPING),
    Work(f"a condition, {_HITS:,} hits", "condition", _HITS, "driving", f"{DEPTH} {_HITS // 2}", expected="done"),
    Work(
        f"a condition on 4 callers, {_HITS:,} hits",
        "condition on callers",
        _HITS,
        "driving",
        f"{DEPTH} {_HITS // 2}",
        expected="done",
        target=ON_CALLERS,
    ),
    Work(
        what=f"{LIBRARIES} dlopens with a stop after each",
        name="loads",
        times=LIBRARIES,
        program="driving",
        arguments=f"load . {LIBRARIES}",
        stop_at="main",
    ),
    Work(
        what=f"{THREADS:,} threads, thread apply all bt",
        name="threads",
        times=THREADS,
        program="threads",
        arguments=f"{THREADS} {FRAMES}",
        stop_at="pause",
    ),
)
_IN_AUTO = (
    Work(
        what=f"{RELOADS} times dlopen and dlclose",
        name="loads",
        times=RELOADS,
        program="driving",
        arguments=f"reload . {RELOADS}",
        stop_at="main",
        target=RELOADING,
    ),
    Work("no SFrame, 800 stepi", "stepi", 800, "plain/driving", _LONG, target=SLEEPING),
    Work("no SFrame, 200 next", "next", 200, "plain/driving", _LONG, target=SLEEPING),
    Work(
        what=f"no SFrame, {RELOADS} times dlopen and dlclose",
        name="loads",
        times=RELOADS,
        program="plain/driving",
        arguments=f"reload ./plain {RELOADS}",
        stop_at="main",
        target=SLEEPING,
    ),
)


def rows() -> Iterator[Row]:
    """Measure CPU seconds of GDB; each round is a session of its own for each mode.  The targets apply to all."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            compiled("threads.c", folder / "threads", "-g")
            driving_with_libraries(folder, LIBRARIES)
            driving_with_libraries(folder / "plain", 1, sframe=False)
        except Unavailable as error:
            yield Row(part=PART, what="moving a program", values=(), unit="", target=AT_MOST, detail=str(error))
            return
        for gdb in all_gdbs():
            for work in _WORK:
                yield from _of(gdb, work, folder)
            for work in _IN_AUTO:
                yield _in_auto(gdb, work, folder)


def _seconds(gdb: Gdb, work: Work, folder: Path, mode: str | None) -> float:
    value: float = gdb.call(
        folder / work.program,
        "moving",
        plugin=mode is not None,
        work=work.name,
        count=work.times,
        program_arguments=work.arguments.replace(" .", f" {folder}"),
        mode=mode,
        stop_at=work.stop_at,
        expected=work.expected,
    )
    return value


def _in_auto(gdb: Gdb, work: Work, folder: Path) -> Row:
    modes = {"without": None, "auto": "auto"}
    times = in_turns(ROUNDS, {name: partial(_seconds, gdb, work, folder, mode) for name, mode in modes.items()})
    what = f"{gdb.name}, {work.what}: mode auto / no plugin"
    return Row(
        part=PART,
        what=what,
        values=ratios(times["auto"], times["without"]),
        unit="x",
        target=work.target,
        detail=medians("ms", **times),
    )


def _of(gdb: Gdb, work: Work, folder: Path) -> Iterator[Row]:
    modes = {"without": None, "off": "off", "always": "always"}
    times = in_turns(ROUNDS, {name: partial(_seconds, gdb, work, folder, mode) for name, mode in modes.items()})
    what = f"{gdb.name}, {work.what}"
    always, off = ratios(times["always"], times["off"]), ratios(times["off"], times["without"])
    yield Row(
        part=PART,
        what=f"{what}: mode always / off",
        values=always,
        unit="x",
        target=work.target,
        detail=medians("ms", **times),
    )
    yield Row(PART, f"{what}: mode off / no plugin", off, "x", OFF)
