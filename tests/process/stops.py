"""Core files of the samples' stops, and their stacks by GDB and by the command."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sframe_unwind.report.stack import SIGNAL_FRAME
from tests.abis.debuggers import described, newest, sysroot
from tests.expectations import Stop
from tests.gdb.driver import call
from tests.gdb.programs import built
from tests.process.command import EMULATOR, NOWHERE, Done, backtrace
from tests.samples.catalogue import SAMPLES

NO_FLOATING_POINT = ("s390x", "free_leaf-sample_in_leaf")
"""A stop whose return address is in a register that the emulator does not save in its core files."""


def taken(stops: Sequence[Stop], abi: str, folder: Path, variant: str) -> list[tuple[Stop, Path, dict[str, Any]]]:
    """Return each stop with the program and the result of :mod:`tests.process.inside.cores`."""
    chosen = [stop for stop in stops if abi in SAMPLES[stop.sample].abis]
    chosen = [stop for stop in chosen if variant in SAMPLES[stop.sample].variants_for(abi)]
    paths = [built(stop.sample, abi, 3, variant) for stop in chosen]
    programs = [described(stop, path, abi) for stop, path in zip(chosen, paths)]
    answers = call(
        newest(abi),
        "tests.process.inside.cores.collect",
        programs=programs,
        sysroot=sysroot(abi),
        folder=str(folder),
    )
    return list(zip(chosen, paths, answers))


def read(core: str, executable: Path, abi: str, kind: str) -> Done:
    """Return the command's result for a core file; the emulator's file does not contain the path of its executable."""
    arguments: list[str | Path] = ["--core", core, "--json", *NOWHERE]
    if kind == EMULATOR:
        arguments += ["--exe", executable]
    if sysroot(abi):
        arguments += ["--sysroot", sysroot(abi)]
    return backtrace(*arguments)


class Shown(NamedTuple):
    """A frame in the output of GDB or the command."""

    pc: int
    function: str
    inlined: bool
    source: tuple[str | None, int | None]


def native(frame: dict[str, Any]) -> Shown:
    """Return a frame of GDB."""
    name = SIGNAL_FRAME if frame["signal"] else frame["name"]
    return Shown(frame["pc"], name, frame["inlined"], tuple(frame["source"]))


def shown(frame: dict[str, Any]) -> Shown:
    """Return a frame of the command."""
    file = frame["file"] and os.path.normpath(frame["file"])
    return Shown(frame["pc"], frame["function"] or "", frame["inlined"], (file, frame["line"]))


def without_first_line(threads: dict[str, list[Shown]]) -> dict[str, list[Shown]]:
    """Return the frames of each thread, without the line where it was stopped.

    There, GDB uses the row that begins a statement, and the command the last one, like addr2line.
    """
    nowhere: tuple[None, None] = (None, None)
    return {thread: [frames[0]._replace(source=nowhere), *frames[1:]] for thread, frames in threads.items()}


def agreeing(stop: Stop, expected: dict[str, list[Shown]]) -> int | None:
    """Return how many frames GDB's own unwinder gets right behind a signal handler; ``None``: all.

    See :func:`tests.abis.native.first_wrong`.  The core files of QEMU 10 lack the library with the trampoline.
    """
    if stop.sample != "signals":
        return None
    (frames,) = expected.values()
    names = [frame.function for frame in frames]
    if SIGNAL_FRAME not in names:
        return names.index("handler") + 2
    return next((level for level, frame in enumerate(frames) if frame.pc >> 48), None)


def within(threads: dict[str, list[Shown]], limit: int | None) -> dict[str, list[Shown]]:
    """Return the innermost frames of each thread."""
    return {thread: frames[:limit] for thread, frames in threads.items()}
