"""Measures `backtrace` of a server of 50 threads under load: how long it is stopped, against eu-stack and GDB."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.compiling import compiled
from bench.report import SCALES, BenchError, Row, Target, Unavailable, medians, ratios

PART = "server"
STOPPED = Target(2)
THREADS = 50
ROUNDS = 9
_NOTICED = 50_000
"""Nanoseconds of the shortest stop that `server.c` can tell from none."""
_MANY_FRAMES = 3 * THREADS
_WARM_UP = 0.5
"""Seconds until the server is at work."""
_TIMEOUT = 120


class _Taken(NamedTuple):
    """The times that one backtrace took, in seconds."""

    stopped: float
    """The longest time in which a thread of the server was stopped."""
    whole: float
    """From the start of the command to its end."""


class _Server:
    """A running server."""

    def __init__(self, program: Path) -> None:
        self._process = subprocess.Popen(
            [str(program), str(THREADS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.process = self._process.pid

    def __enter__(self) -> _Server:
        time.sleep(_WARM_UP)
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.kill()
        self._process.communicate()

    def longest_stop(self) -> float:
        """Return the longest stop since the last call, in seconds.

        :raises BenchError: the server does not answer requests.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        longest, _, answered = map(int, self._process.stdout.readline().split())
        if not answered:
            raise BenchError("the server answers no requests")
        return max(longest, _NOTICED) / 1e9

    def during(self, name: str, command: Sequence[str]) -> _Taken:
        """Run a command that shows the stacks of all threads."""
        self.longest_stop()
        started = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
        whole = time.monotonic() - started
        frames = sum(line.startswith("#") for line in done.stdout.splitlines())
        if frames < _MANY_FRAMES:
            raise BenchError(f"{name}: {frames} frames, exit status {done.returncode}: {done.stderr[-200:]}")
        return _Taken(self.longest_stop(), whole)


def rows() -> Iterator[Row]:
    """Measure in alternation; a thread of the server that looks at the clock says how long it was stopped."""
    what = f"{THREADS} threads under load"
    with tempfile.TemporaryDirectory() as folder:
        try:
            program = compiled("server.c", Path(folder) / "server")
            peers = [_needed("eu-stack", "elfutils"), _needed("gdb", "gdb")]
        except Unavailable as error:
            yield Row(part=PART, what=f"{what}: stopped", values=(), unit="x", target=STOPPED, detail=str(error))
            return
        with _Server(program) as server:
            process = str(server.process)
            commands = {
                "backtrace": [sys.executable, "-m", "sframe_unwind", "backtrace", "--pid", process],
                "eu_stack": [peers[0], "-p", process],
                "gdb": [peers[1], "-nx", "-batch", "-p", process, "-ex", "thread apply all bt"],
            }
            taken = _alternate(server, commands)
    stopped = {name: [one.stopped for one in found] for name, found in taken.items()}
    whole = {name: [one.whole for one in found] for name, found in taken.items()}
    ratio = ratios(stopped["backtrace"], stopped["eu_stack"])
    yield Row(
        part=PART,
        what=f"{what}: longest stop, backtrace / eu-stack",
        values=ratio,
        unit="x",
        target=STOPPED,
        detail=medians("ms", **stopped),
    )
    milliseconds = [one * SCALES["ms"] for one in whole["backtrace"]]
    yield Row(
        part=PART,
        what=f"{what}: whole command",
        values=milliseconds,
        unit="ms",
        target=None,
        detail=medians("ms", **whole),
    )


def _alternate(server: _Server, commands: Mapping[str, Sequence[str]]) -> dict[str, list[_Taken]]:
    taken: dict[str, list[_Taken]] = {name: [] for name in commands}
    for number in range(ROUNDS + 1):
        for name, command in commands.items():
            found = server.during(name, command)
            if number:  # the first round reads the files
                taken[name].append(found)
    return taken


def _needed(name: str, package: str) -> str:
    found = shutil.which(name, path="/usr/bin:/usr/local/bin")
    if found is None:
        raise Unavailable(f"{name} is not installed (package {package})")
    return found
