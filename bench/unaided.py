"""Measures the whole command ``backtrace`` on a core file and on a process with many threads."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.compiling import compiled
from bench.debuggers import all_gdbs
from bench.report import BenchError, Row, Target, Unavailable
from bench.timing import alternate

PART = "backtrace"
WHOLE = Target(2)
ROUNDS = 5
THREADS, FRAMES = 100, 50
_BELOW = 4
"""Number of frames outside the recursion: the wait, ``work``, and two of the C library."""
_TIMEOUT = 120


def rows() -> Iterator[Row]:
    """Measure whole processes.  After the warm-up round, the files are in the page cache."""
    what = f"{THREADS} threads of {FRAMES} frames"
    with tempfile.TemporaryDirectory() as folder:
        try:
            program = compiled("threads.c", Path(folder) / "threads")
            gdb = next(iter(all_gdbs()), None)
            if gdb is None:
                raise Unavailable("no GDB to write a core file")
        except Unavailable as error:
            yield Row(part=PART, what=what, values=(), unit="s", target=WHOLE, detail=str(error))
            return
        core = Path(folder) / "core"
        command = [str(program), str(THREADS), str(FRAMES - _BELOW)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            try:
                if process.stdout is None or process.stdout.readline() != b"ready\n":
                    raise BenchError(f"{program}: it ends before its threads wait")
                gdb.run("-p", str(process.pid), "-ex", f"generate-core-file {core}")
                live = ["--pid", str(process.pid)]
                times = alternate(
                    ROUNDS, {"core": lambda: _backtrace("--core", str(core)), "process": lambda: _backtrace(*live)}
                )
            finally:
                process.kill()
    for name, found in times.items():
        yield Row(PART, f"{what}: a {name}", found, "s", WHOLE)


def _backtrace(*arguments: str) -> None:
    command = [sys.executable, "-m", "sframe_unwind", "backtrace", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    frames = sum(line.startswith("#") for line in done.stdout.splitlines())
    if done.returncode or frames < THREADS * FRAMES:
        raise BenchError(f"{' '.join(command)}: exit status {done.returncode}, {frames} frames: {done.stderr[-200:]}")
