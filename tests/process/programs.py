"""The programs of these tests, and their core files."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.abis.debuggers import newest
from tests.gdb.compiling import compiled_with_threads
from tests.gdb.driver import call
from tests.hanging import HANG
from tests.process.command import GDB

FOLDER = Path(__file__).resolve().parent
SECONDS = HANG
_WRITE = "1"
"""The number of write() on AMD64."""


def compiled(source: str, folder: Path, *flags: str) -> Path:
    """Return the path of a program made from one source of this folder, by default with SFrame."""
    return compiled_with_threads(FOLDER / source, folder, *flags)


def core_of(
    executable: Path, place: str, folder: Path, *arguments: str
) -> tuple[Path, dict[str, list[dict[str, Any]]]]:
    """Return a core file of a program stopped at a place, and GDB's stacks of its threads."""
    program = {
        "executable": str(executable),
        "arguments": list(arguments),
        "emulator": [],
        "place": place,
        "hits": 1,
        "signals": [],
        "libraries": str(executable.parent),
    }
    folder.mkdir()
    (answer,) = call(
        newest("amd64"), "tests.process.inside.cores.collect", programs=[program], sysroot="", folder=str(folder)
    )
    return Path(answer[GDB]["file"]), answer[GDB]["threads"]


class Crash(NamedTuple):
    """A program with debug information, a core file of it, and its build ID."""

    program: Path
    core: Path
    build_id: str


def crash_of(source: str, place: str, folder: Path, *flags: str) -> Crash:
    """Compile one source of this folder, and write a core file when the program reaches a place."""
    program = compiled(source, folder, *flags)
    core, _ = core_of(program, place, folder / "core")
    notes = subprocess.run(["readelf", "-n", str(program)], check=True, capture_output=True, text=True).stdout
    return Crash(program, core, notes.split("Build ID: ")[1].split()[0])


@contextmanager
def running(executable: Path, *arguments: str) -> Iterator[int]:
    """Run a program that announces when it waits; yield its process id."""
    process = subprocess.Popen([str(executable), *arguments], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        while not _waits(process.pid):  # its output can be read before its call of write() has returned
            time.sleep(0.001)
        yield process.pid
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=SECONDS)


def _waits(process: int) -> bool:
    """Return whether the first thread of a process sleeps in a system call other than write(), or has ended."""
    folder = Path(f"/proc/{process}")
    try:
        call = (folder / "syscall").read_text(encoding="ascii").split()[0]
    except PermissionError:  # only root may read that of a thread that has ended; another one has announced itself
        if (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z":
            raise
        return True
    return call not in ("running", _WRITE)


def is_stopped(process: int) -> bool:
    """Return whether any thread of a process is stopped by a signal or a tracer."""
    for task in Path(f"/proc/{process}/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended
            if (task / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] in "tT":
                return True
    return False
