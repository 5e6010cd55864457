"""Measures the whole command `backtrace` on a core and a process with many threads, with eu-stack beside it."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.compiling import compiled
from bench.debuggers import all_gdbs
from bench.pairs import Pair, pair_row
from bench.processes import COMMAND, usual_environment
from bench.report import BenchError, Row, Target, Unavailable

PART = "backtrace"
OF_PROCESS, OF_CORE = Target(2.5), Target(1.2)
THREADS, FRAMES = 100, 50
_BELOW = 4
"""Number of frames outside the recursion: the wait, ``work``, and two of the C library."""
_TIMEOUT = 120


def rows() -> Iterator[Row]:
    """Measure whole processes; each of both prints names alone, and source lines and inlined functions, too."""
    what = f"{THREADS} threads of {FRAMES} frames"
    with tempfile.TemporaryDirectory() as folder:
        try:
            program = compiled("threads.c", Path(folder) / "threads")
            gdb = next(iter(all_gdbs()), None)
            if gdb is None:
                raise Unavailable("no GDB to write a core file")
        except Unavailable as error:
            yield Row(part=PART, what=what, values=(), unit="x", target=OF_PROCESS, detail=str(error))
            return
        core = Path(folder) / "core"
        command = [str(program), str(THREADS), str(FRAMES - _BELOW)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            try:
                if process.stdout is None or process.stdout.readline() != b"ready\n":
                    raise BenchError(f"{program}: it ends before its threads wait")
                gdb.run("-p", str(process.pid), "-ex", f"generate-core-file {core}")
                for pair in _pairs(process.pid, core):
                    _check(pair.command)
                    yield pair_row(PART, pair._replace(what=f"{what}, {pair.what}"))
            finally:
                process.kill()


def _pairs(pid: int, core: Path) -> Iterator[Pair]:
    for name, ours, theirs, target in (
        ("a process", ("--pid", str(pid)), ("-p", str(pid)), OF_PROCESS),
        ("a core", ("--core", str(core)), ("--core", str(core)), OF_CORE),
    ):
        command, peer = (*COMMAND, "backtrace", *ours), ("eu-stack", *theirs)
        yield Pair(f"{name} with lines / eu-stack -s -i", command, (*peer, "-s", "-i"), target)
        yield Pair(f"{name}, --no-lines / eu-stack", (*command, "--no-lines"), peer, target)


def _check(command: Sequence[str]) -> None:
    """Check that a command shows all frames.

    :raises BenchError: it does not.
    """
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=_TIMEOUT, check=False, env=usual_environment()
    )
    frames = sum(line.startswith("#") for line in done.stdout.splitlines())
    if done.returncode or frames < THREADS * FRAMES:
        raise BenchError(f"{' '.join(command)}: exit status {done.returncode}, {frames} frames: {done.stderr[-200:]}")
