"""Starts and stops a sample from inside GDB, natively or under an emulator."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gdb

from tests.hanging import HANG
from tests.waiting import wait_until

SOCKET_SECONDS = HANG


def execute(command: str) -> str:
    """Run a command and return its output."""
    return str(gdb.execute(command, to_string=True))


def text_section() -> tuple[int, int]:
    """Return start and end address (exclusive) of the executable's `.text` in memory."""
    line = next(line for line in execute("info files").splitlines() if line.endswith(" is .text"))
    start, _, end, *_ = line.split()
    return int(start, 16), int(end, 16)


@contextmanager
def stopped(program: dict[str, Any]) -> Iterator[None]:
    """Stop a program at its place; afterwards, remove it and its breakpoints.

    :param program: in the form of `tests.gdb.programs.program`.
    """
    execute(f'file "{program["executable"]}"')
    for signal in program["signals"]:
        execute(f"handle {signal} nostop noprint pass")
    with _started(program["emulator"], program["executable"], program["arguments"]):
        try:
            yield
        finally:
            execute("delete")
            if gdb.selected_inferior().pid:
                execute("kill")


@contextmanager
def _started(emulator: Sequence[str], executable: str, arguments: Sequence[str]) -> Iterator[None]:
    """Yield with the process at its first instruction (under an emulator) or not yet running (`resume` starts it)."""
    if not emulator:
        execute(f"set args {shlex.join(arguments)} >/dev/null")
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder) / "gdb"
        command = [emulator[0], "-g", str(socket), *emulator[1:], executable, *arguments]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            connect(socket)
            yield
        finally:
            process.kill()
            process.wait()


def connect(socket: Path, kind: str = "remote") -> None:
    """Connect to the stub of an emulator; the socket exists a moment before it accepts connections."""

    def connected() -> bool:
        try:
            execute(f"target {kind} {socket}")
        except gdb.error:
            return False
        return True

    wait_until(connected, f"connected to {socket}", SOCKET_SECONDS)


def resume() -> None:
    """Start or continue the program until its next stop."""
    execute("continue" if gdb.selected_inferior().pid else "run")


def run_to(place: str) -> None:
    """Start the program with a breakpoint at a place, and run to it."""
    execute(f"break {place}")
    resume()
