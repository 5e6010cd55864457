"""Kills the process in the middle of a backtrace."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import gdb

from tests.abis.inside.remote import served
from tests.gdb.inside.program import execute
from tests.hanging import HANG
from tests.waiting import runs, wait_until

SECONDS = HANG
STILL_HERE = "echo still here\\n"
COMMANDS = (STILL_HERE, "bt", "sframe bt", "sframe compare", "sframe explain", "sframe status", "info threads")


def collect(
    emulator: list[str], executable: str, place: str, cases: list[tuple[int, str]], folder: str
) -> list[list[dict[str, str]]]:
    """For each case, return the output of commands if the process dies after GDB has unwound some frames.

    :param cases: the level up to which frames are unwound, and the command that needs more of them.
    """
    return [
        _one(
            emulator=emulator,
            executable=executable,
            place=place,
            level=level,
            first=first,
            folder=Path(folder) / str(number),
        )
        for number, (level, first) in enumerate(cases)
    ]


def _one(
    emulator: list[str], executable: str, place: str, level: int, first: str, folder: Path
) -> list[dict[str, str]]:
    folder.mkdir()
    execute(f'file "{executable}"')
    with served("remote", emulator, executable, folder) as process:
        execute(f"tbreak {place}")
        execute("set sframe mode off")
        execute("continue")
        execute("set sframe mode always")
        frame = gdb.newest_frame()
        for _ in range(level):
            frame = frame.older()
        _kill(process)
        return [_said(command) for command in (first, *COMMANDS)]


def _said(command: str) -> dict[str, str]:
    try:
        return {"output": execute(command), "error": ""}
    except gdb.error as error:
        return {"output": "", "error": str(error)}
    except KeyboardInterrupt as error:
        return {"output": "", "error": str(error)}


def _kill(process: subprocess.Popen[bytes] | None) -> None:
    """End the emulator, or gdbserver, which is the parent of the process."""
    if process is not None:
        process.kill()
        process.wait()
        return
    child = gdb.selected_inferior().pid
    server = int(Path(f"/proc/{child}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[1])
    for pid in (server, child):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not runs(child), "the process is gone", SECONDS)
