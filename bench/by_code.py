"""Measures the stacks of a program without unwind data and symbols in GDB and LLDB, by the machine code."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.debuggers import Gdb, installed_gdb
from bench.lldbs import Lldb, all_lldbs
from bench.report import SCALES, BenchError, Row, Target, Unavailable, medians
from lab.code.stops.building import STRIPPED, STRIPPED_WITH_CFI, WITH_CFI, Program, build
from sframe_unwind.elf import opened

PART = "by-code"
FIRST, LATER = Target(500), Target(50)
"""Limits in milliseconds, for the first stop of a debugger and for each later one, with a stack of all frames."""
ROUNDS, STOPS = 5, 20
"""The number of sessions, and of stops after the first one in each."""
_PROGRAM = Program("indirect", "-O2")
_PLACE, _FRAMES = "leaf", 9
"""The function that stops the program, and the smallest number of frames outside it."""
_TITLES = {"first": "the first stop and stack", "later": "a later stop and stack"}


class _Builds(NamedTuple):
    """The same program without symbols, with unwind data and without."""

    with_cfi: Path
    without: Path
    place: int
    """Address of the instruction at which it stops."""


def rows() -> Iterator[Row]:
    """Measure whole sessions; each stop includes the work of the plugin at it."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            debuggers: list[Gdb | Lldb] = [installed_gdb(), *filter(_has_packages, all_lldbs())]
            builds = _build(Path(folder))
        except Unavailable as error:
            yield Row(part=PART, what=_TITLES["first"], values=(), unit="ms", target=FIRST, detail=str(error))
            return
        for debugger in debuggers:
            yield from _of(debugger, builds)


def _has_packages(lldb: Lldb) -> bool:
    """Return whether an LLDB has the packages of this environment, the extra ``code`` among them."""
    return lldb.path.parent == Path(sys.executable).parent


def _build(folder: Path) -> _Builds:
    try:
        paths = build(_PROGRAM, "amd64", folder)
    except (OSError, RuntimeError) as error:
        raise Unavailable(str(error)) from error
    with opened(paths[WITH_CFI]) as binary:
        (place,) = binary.symbols.addresses(_PLACE)
    return _Builds(paths[STRIPPED_WITH_CFI], paths[STRIPPED], place)


def _of(debugger: Gdb | Lldb, builds: _Builds) -> Iterator[Row]:
    seconds: dict[str, dict[str, list[float]]] = {when: {"by_code": [], "by_CFI": []} for when in _TITLES}
    for _ in range(ROUNDS):
        for name, program, generate in (("by_code", builds.without, True), ("by_CFI", builds.with_cfi, False)):
            taken, frames = debugger.call(
                program, "stops", plugin=generate, place=builds.place, count=1 + STOPS, generate=generate
            )
            if min(frames) <= _FRAMES:
                raise BenchError(f"{debugger.name}: a stack of {min(frames)} frames, expected more than {_FRAMES}")
            seconds["first"][name].append(taken[0])
            seconds["later"][name].append(sum(taken[1:]) / STOPS)
    for when, target in (("first", FIRST), ("later", LATER)):
        yield Row(
            part=PART,
            what=f"{debugger.name}: {_TITLES[when]}, without unwind data and symbols",
            values=[one * SCALES["ms"] for one in seconds[when]["by_code"]],
            unit="ms",
            target=target,
            detail=medians("ms", **seconds[when]),
        )
