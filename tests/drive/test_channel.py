"""All processes of a session are ended, whatever happens to the debugger."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lab.drive import places
from lab.drive.building import built
from lab.drive.channel import Channel, Died
from lab.drive.debuggers import DEBUGGERS, INSIDE, WITHOUT
from lab.drive.programs import named
from tests.hanging import HANG
from tests.lldb.debuggers import CHECKOUT
from tests.waiting import wait_until


def test_a_process_that_outlives_the_debugger_ends_with_the_session() -> None:
    channel = Channel(["sh", "-c", "setsid sleep 300 >/dev/null 2>&1 & echo $! >left"], os.environ)
    try:
        channel.quit(HANG)
        left = int((channel.folder / "left").read_text(encoding="ascii"))
        # In the middle of an execve, the kernel shows neither command line nor environment.
        wait_until(lambda: _command(left) == b"sleep", "the process runs")
    finally:
        channel.close()
    wait_until(lambda: not _command(left), "the process has ended")


_OPENED = """
import os, sys, time
from lab.drive.channel import Channel
channel = Channel(["sleep", "300"], os.environ)
print(channel.pid, channel.folder, flush=True)
time.sleep(300)
"""


def test_a_debugger_ends_with_the_process_that_drives_it() -> None:
    with subprocess.Popen([sys.executable, "-c", _OPENED], stdout=subprocess.PIPE, cwd=CHECKOUT) as driving:
        assert driving.stdout is not None
        number, folder = driving.stdout.readline().decode().split(maxsplit=1)
        wait_until(lambda: _command(int(number)) == b"sleep", "the process runs")
        driving.kill()
    wait_until(lambda: not _command(int(number)), "the process has ended")
    shutil.rmtree(folder.strip())


def test_a_debuggers_memory_is_bounded() -> None:
    channel = Channel([sys.executable, "-c", "x = bytearray(9 << 30)"], os.environ)
    try:
        with pytest.raises(Died, match="MemoryError"):
            channel.quit(HANG)
    finally:
        channel.close()


@pytest.mark.parametrize("is_distant", [False, True])
def test_a_server_ends_with_its_gdb(is_distant: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The paths have a space, as in some checkouts."""
    build, debugger = named("calls-O2"), DEBUGGERS["gdb18"]
    executable = Path(shutil.copy(built(build), tmp_path / "the program"))
    monkeypatch.setattr(places, "INSIDE", Path(shutil.copytree(INSIDE, tmp_path / "the scripts")))
    channel = Channel(debugger.command(executable, WITHOUT), debugger.environment())
    try:
        connect = places.remote_start(build, executable, random.Random(0), is_distant)[:1]
        _, state = channel.perform(connect, full=False, level=0, seconds=HANG)
        assert state["live"]
        server = next(process for process in channel.processes() if _command(process) == b"gdbserver")
        os.kill(server, signal.SIGSTOP)  # it cannot see that the connection is closed
        os.kill(channel.pid, signal.SIGKILL)
        wait_until(lambda: not _command(server), "the server has ended")
    finally:
        channel.close()


def _command(process: int) -> bytes:
    """Return the name of the program that a process runs; empty: it has ended."""
    try:
        arguments = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""
    return Path(os.fsdecode(arguments.split(b"\0")[0])).name.encode()
