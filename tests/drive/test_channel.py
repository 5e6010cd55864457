"""All processes of a session are ended, whatever happens to the debugger."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

from tests.drive.building import built
from tests.drive.channel import Channel
from tests.drive.debuggers import DEBUGGERS, WITHOUT
from tests.drive.places import remote_start
from tests.drive.programs import named

_SECONDS = 30.0


def test_a_process_that_outlives_the_debugger_ends_with_the_session() -> None:
    channel = Channel(["sh", "-c", "setsid sleep 300 >/dev/null 2>&1 & echo $! >left"], os.environ)
    try:
        channel.quit(_SECONDS)
        left = int((channel.folder / "left").read_text(encoding="ascii"))
        # In the middle of an execve, the kernel shows neither command line nor environment.
        _wait_until(lambda: _command(left) == b"sleep")
    finally:
        channel.close()
    _wait_until(lambda: not _command(left))


def test_a_server_ends_with_its_gdb() -> None:
    build, debugger = named("calls-O2"), DEBUGGERS["gdb18"]
    executable = built(build)
    channel = Channel(debugger.command(executable, WITHOUT), debugger.environment())
    try:
        connect = remote_start(build, executable, random.Random(0))[:1]
        channel.perform(connect, full=False, level=0, seconds=_SECONDS)
        server = next(process for process in channel.processes() if _command(process) == b"gdbserver")
        os.kill(server, signal.SIGSTOP)  # it cannot see that the connection is closed
        os.kill(channel.pid, signal.SIGKILL)
        _wait_until(lambda: not _command(server))
    finally:
        channel.close()


def _command(process: int) -> bytes:
    """Return the name of the program that a process runs; empty: it has ended."""
    try:
        arguments = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""
    return Path(os.fsdecode(arguments.split(b"\0")[0])).name.encode()


def _wait_until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _SECONDS
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.05)
