"""Waiting in tests: for a condition, and not longer than a deadline.  Debuggers' Pythons import it too."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Callable

from tests.hanging import HANG

SECONDS = HANG
"""The default deadline in seconds: far more than any condition takes on a machine with other work."""
_PAUSE = 0.01


def wait_until(condition: Callable[[], object], what: str, seconds: float = SECONDS) -> None:
    """Return when a condition holds.

    :param what: the condition in words, for the error.
    :raises TimeoutError: it does not hold in time.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {seconds} seconds still not: {what}")
        time.sleep(_PAUSE)


def listens(process: int) -> bool:
    """Return whether a process listens at a Unix socket; the socket's file appears a moment before."""
    opened = set()
    for descriptor in Path(f"/proc/{process}/fd").glob("*"):
        with suppress(OSError):  # it has been closed
            opened.add(str(descriptor.readlink()))
    entries = (line.split() for line in Path("/proc/net/unix").read_text(encoding="utf-8").splitlines())
    # Number, uses, protocol, flags, type, state, inode, path; this flag is __SO_ACCEPTCON.
    return any(entry[3] == "00010000" and f"socket:[{entry[6]}]" in opened for entry in entries)


def runs(process: int) -> bool:
    """Return whether a process is running; one that has ended but was not waited for is not."""
    try:
        return _state(Path(f"/proc/{process}/stat")) != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def members(session: int) -> list[int]:
    """Return the running processes of a session, which ``start_new_session`` begins.

    :param session: the number of the process that began it.
    """
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            # After the name: state, parent, group, session.
            state, _, _, begun_by = stat.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[:4]
            if int(begun_by) == session and state != "Z":
                found.append(int(stat.parent.name))
    return found


def processor_seconds(process: int) -> float:
    """Return how long the threads of a process have run so far; 0 for one that is gone."""
    nanoseconds = 0
    for file in Path(f"/proc/{process}/task").glob("*/schedstat"):
        try:
            nanoseconds += int(file.read_text(encoding="ascii").split()[0])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return nanoseconds / 1e9


def wait_until_it_worked(process: int, seconds: float) -> None:
    """Return when a process has worked for so many seconds from now on, or has ended.

    Unlike a pause, this reaches the same point of its work whatever else the machine does.
    """
    enough = processor_seconds(process) + seconds
    wait_until(lambda: not runs(process) or processor_seconds(process) >= enough, f"process {process} at work")


def wait_until_idle(process: int) -> None:
    """Return when all threads of a process have slept for a while."""
    asleep = 0

    def quiet() -> bool:
        nonlocal asleep
        before = processor_seconds(process)
        states = {_state(file) for file in Path(f"/proc/{process}/task").glob("*/stat")}
        asleep = asleep + 1 if states <= {"S"} and processor_seconds(process) == before else 0
        return asleep >= 10

    wait_until(quiet, f"process {process} idle")


def _state(stat: Path) -> str:
    return stat.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0]
