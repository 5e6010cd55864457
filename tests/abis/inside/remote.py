"""Sessions with a remote target: their output, and the number of packets."""

from __future__ import annotations

import json
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import gdb

from tests.abis.inside.chains import frames
from tests.gdb.inside.program import connect, execute

WITHOUT_FILES = (
    "set sysroot /nonexistent",
    "set remote hostio-open-packet off",
    "set remote pid-to-exec-file-packet off",
)
"""Settings with which GDB sees only the target's memory and registers."""


def session(
    kind: str, emulator: list[str], executable: str, places: list[int], settings: list[str], files: bool
) -> list[dict[str, Any]]:
    """Stop at each place in turn; return the frames in each mode, and their cost.

    :param kind: ``remote`` or ``extended-remote``.
    :param emulator: the command that runs the program; empty for gdbserver.
    :param settings: commands before GDB connects.
    :param files: whether GDB is given the program.
    """
    for command in (*settings, *([f'file "{executable}"'] if files else WITHOUT_FILES)):
        execute(command)
    with tempfile.TemporaryDirectory() as folder, served(kind, emulator, executable, Path(folder)):
        stops = []
        for place in places:
            execute(f"tbreak *{place:#x}")
            execute("set sframe mode always")
            cold = packets("continue", "bt")
            stop: dict[str, Any] = {"first": cold, "always again": packets("bt"), "bt": execute("bt")}
            stop["chain"] = frames()
            stop["files"] = len(gdb.objfiles())
            stop["has_vdso"] = "AT_SYSINFO_EHDR" in execute("info auxv")
            stop["compare"] = json.loads(execute("sframe compare --json"))["threads"][0]
            stop["status"] = execute("sframe status")
            # The same at the next two instructions, so that neither mode has cached data.
            stop["always"] = packets("stepi", "bt")
            execute("set sframe mode off")
            stop["off"] = packets("stepi", "bt")
            stop["off again"] = packets("bt")
            stops.append(stop)
        return stops


@contextmanager
def served(kind: str, emulator: list[str], executable: str, folder: Path) -> Iterator[Any]:
    """Connect to the program at its first instruction; yield the emulator's process.

    gdbserver is a child of GDB, at the other end of a pipe.
    """
    if not emulator:
        execute(f"target {kind} | gdbserver --once - {shlex.quote(executable)} 2>/dev/null")
        yield None
        _end()
        return
    socket = folder / "socket"
    command = [emulator[0], "-g", str(socket), *emulator[1:], executable]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        connect(socket, kind)
        yield process
        _end()
    finally:
        process.kill()
        process.wait()


def _end() -> None:
    """End the process, if it still exists."""
    with suppress(gdb.error):
        if gdb.selected_inferior().pid:
            execute("kill")


def packets(*commands: str) -> int:
    """Run commands; return the number of packets that GDB sends to the target meanwhile."""
    execute("set debug remote 1")
    try:
        return sum(execute(command).count("Sending packet: ") for command in commands)
    finally:
        execute("set debug remote 0")
