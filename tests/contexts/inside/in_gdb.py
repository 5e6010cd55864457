"""Inside GDB: the stack of each context while it runs, by GDB alone, and the later output of the plugin's commands."""

from __future__ import annotations

import os
import re
import resource
from pathlib import Path
from typing import Any

import gdb

from sframe_unwind.report.stack import SIGNAL_FRAME
from tests.gdb.inside.frames import KINDS, chain
from tests.gdb.inside.program import execute, resume, run_to, stopped


def collect(
    program: dict[str, Any], sysroot: str, commands: list[str], by_hand: dict[str, str], folder: str
) -> dict[str, Any]:
    """Return the stacks at each stop, the output of the commands at the end and in a core file, and the core file.

    `saved` is whether the core file has the code of the signal trampoline, of which GDB else shows zeros.

    :param by_hand: registers and expressions; the stack that GDB itself gives with these values comes last.
    """
    if sysroot:
        execute(f"set sysroot {sysroot}")
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))
    os.chdir(folder)  # the emulator writes its core files to the folder in which it was started
    execute("set sframe mode off")
    execute("set backtrace limit 20")
    with stopped(program):
        execute("break *trap")
        run_to(program["place"])
        stops = [_frames()]
        for _ in range(1, program["hits"]):
            resume()
            stops.append(_frames())
        # A core file has no program to call a function in.
        live = [attempt(command) for command in [*commands, "sframe bt -ucontext make(0,0,0)"]]
        pcs = {pc for _, text in live for pc in re.findall(rf"^#\d+ +(0x[0-9a-f]+)  {SIGNAL_FRAME}", text, re.M)}
        trampolines = {command: attempt(command) for command in (f"output *(int *) {pc}" for pc in pcs)}
        selected = gdb.selected_frame().name()
        core = Path(folder) / "by-gdb"
        if not program["emulator"]:
            execute(f"generate-core-file {core}")
        for name, value in by_hand.items():
            execute(f"set ${name} = {value}")
        stops.append(_frames())
        execute("delete")
        if program["emulator"]:
            execute("signal SIGABRT")
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)  # it first notifies GDB, and then writes
            (core,) = Path(folder).glob("qemu_*.core")
    execute(f"core-file {core}")
    dead = [attempt(command) for command in commands]
    saved = all(attempt(command) == instruction for command, instruction in trampolines.items())
    execute("core-file")
    return {"stops": stops, "live": live, "dead": dead, "core": str(core), "selected": selected, "saved": saved}


def attempt(command: str) -> list[Any]:
    """Return whether a command succeeds, and its output."""
    try:
        return [True, execute(command)]
    except gdb.error as error:
        return [False, str(error)]


def _frames() -> list[dict[str, Any]]:
    return [
        {
            "name": SIGNAL_FRAME if frame.type() == gdb.SIGTRAMP_FRAME else frame.name() or "??",
            "pc": frame.pc(),
            "sp": int(frame.read_register("sp")) & (1 << 64) - 1,
        }
        for frame in chain()
        if KINDS.get(frame.type()) not in ("tail call", "inline")
    ]
