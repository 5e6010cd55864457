"""The programs of these tests, and recordings of them by ``perf record``."""

from __future__ import annotations

import functools
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.gdb.compiling import compiled_with_threads
from tests.hanging import HANG
from tests.missing import absent, recordings_needed

FOLDER = Path(__file__).resolve().parent
BUILT = FOLDER.parents[1] / ".cache" / "perf"
SECONDS = HANG


def compiled(source: str, folder: Path, *flags: str) -> Path:
    """Return the path of a program made from one source of this folder, with SFrame."""
    return compiled_with_threads(FOLDER / source, folder, *flags)


@functools.cache
def sorting() -> Path:
    return compiled("sorting.c", BUILT)


def record(program: Path, folder: Path, *options: str, dump: int = 16384) -> Path:
    """Record a run of a program; see :func:`record_command`."""
    return record_command([str(program)], folder, *options, dump=dump)


def record_command(command: Sequence[str], folder: Path, *options: str, dump: int = 16384) -> Path:
    """Record a run of a command with copies of its stack, and return the path of the recording.

    :param options: more options of ``perf record``; ``-o -`` records through a pipe.
    :param dump: number of bytes of stack in each sample.
    """
    if shutil.which("perf") is None:
        absent("perf is not installed: recordings stay untested")
    recordings_needed()
    path = folder / "perf.data"
    place = [] if "-o" in options else ["-o", str(path)]
    event = [] if "-a" in options else ["-e", "cpu-clock:u"]
    usual = ["-q", *event, "-F", "499", "--call-graph", f"dwarf,{dump}"]
    line = ["perf", "record", *usual, *place, *options, "--", *command]
    done = subprocess.run(line, capture_output=True, timeout=SECONDS, check=False)
    assert done.returncode in (0, 1), done.stderr
    if "-o" in options:
        path.write_bytes(done.stdout)
    return path
