"""Writes core files of stopped programs, and returns the stacks by GDB's own unwinders at the same stops."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import Any

import gdb

from tests.abis.inside.chains import without_limits
from tests.gdb.inside.frames import KINDS, chain
from tests.gdb.inside.program import execute, resume, run_to, stopped
from tests.process.command import EMULATOR, GDB, KERNEL


def collect(programs: list[dict[str, Any]], sysroot: str, folder: str) -> list[dict[str, Any]]:
    """Return, for each program, its core files by their writers, and the stacks of its threads at that time.

    :param folder: folder for the core files.
    """
    if sysroot:
        execute(f"set sysroot {sysroot}")
    execute("set sframe mode off")
    execute("set backtrace limit 200")
    without_limits()
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))
    return [_program(program, Path(folder) / str(number)) for number, program in enumerate(programs)]


def _program(program: dict[str, Any], folder: Path) -> dict[str, Any]:
    folder.mkdir()
    os.chdir(folder)  # the emulator writes its core files to the folder in which it was started
    execute(f"set cwd {folder}")
    execute(f"set solib-search-path {program['libraries']}")
    with stopped(program):
        run_to(program["place"])
        for _ in range(1, program["hits"]):
            resume()
        by_kind = {}
        running = _threads()
        if not program["emulator"]:
            by_kind[GDB] = {"file": str(folder / "by-gdb"), "threads": running}
            execute(f"generate-core-file {by_kind[GDB]['file']}")
        execute("delete")
        execute("signal SIGABRT")
        if program["emulator"]:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)  # it first notifies GDB, and then writes
    kind, names = (EMULATOR, "qemu_*.core") if program["emulator"] else (KERNEL, "core*")
    for path in folder.glob(names):
        execute(f'core-file "{path}"')  # other threads continued for a moment before they died
        try:
            threads = _threads()
        except gdb.error:  # the emulator does not save the mask of signed addresses
            threads = running
        by_kind[kind] = {"file": str(path), "threads": threads}
        execute("core-file")
    if program["emulator"]:
        assert EMULATOR in by_kind
        for path in folder.glob("core*"):
            path.unlink()  # the emulator's own
    return by_kind


def _source(frame: Any) -> list[Any]:
    """Return the path of the source file and the line of a frame; ``None``: GDB knows none."""
    place = frame.find_sal()
    return [place.symtab.fullname(), place.line] if place.symtab is not None and place.line else [None, None]


def _threads() -> dict[str, list[dict[str, Any]]]:
    """Return the frames, without those of tail calls, by the system's number of each thread."""
    selected = gdb.selected_thread()
    threads = {}
    for thread in gdb.selected_inferior().threads():
        thread.switch()
        threads[str(thread.ptid[1] or thread.ptid[0])] = [
            {
                "name": frame.name() or "",
                "pc": frame.pc(),
                "signal": frame.type() == gdb.SIGTRAMP_FRAME,
                "inlined": frame.type() == gdb.INLINE_FRAME,
                "source": _source(frame),
            }
            for frame in chain()
            if KINDS.get(frame.type()) != "tail call"
        ]
    selected.switch()
    return threads
