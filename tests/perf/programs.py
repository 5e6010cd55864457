"""The programs of these tests, and recordings of them by ``perf record``."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.gdb.compiling import compiled_with_threads
from tests.hanging import HANG
from tests.missing import absent, recordings_needed

FOLDER = Path(__file__).resolve().parent
BUILT = FOLDER.parents[1] / ".cache" / "perf"
SECONDS = HANG


def compiled(source: str, folder: Path, *flags: str) -> Path:
    """Return the path of a program made from one source of this folder, with SFrame.

    All symbols are bound at its start, so that no sample of its work is in the dynamic linker.
    """
    return compiled_with_threads(FOLDER / source, folder, "-Wl,-z,now", *flags)


@functools.cache
def sorting() -> Path:
    """Return the path of ``sorting.c``'s program.  It appears there whole, because another worker may be running it."""
    BUILT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILT) as folder:
        return compiled("sorting.c", Path(folder)).replace(BUILT / "sorting")


def record(program: Path, folder: Path, *options: str, dump: int = 16384) -> Path:
    """Record the work of a program that includes ``recorded.h``, without its start and its end.

    In a whole run, one sample in some thousands is in code without CFI or at an entry point, and a few are in the
    dynamic linker: a test could not tell what to expect of each sample.  See :func:`record_command`.
    """
    commands, answers = os.pipe(), os.pipe()
    passed = commands[1], answers[0], commands[0], answers[1]
    try:
        control = f"fd:{commands[0]},{answers[1]}"
        environment = {**os.environ, "PERF_CONTROL": f"{commands[1]},{answers[0]}"}
        whole = (*options, "--delay=-1", f"--control={control}")
        return _record([str(program)], folder, whole, dump, env=environment, pass_fds=passed)
    finally:
        for descriptor in passed:
            os.close(descriptor)


def record_command(command: Sequence[str], folder: Path, *options: str, dump: int = 16384) -> Path:
    """Record a whole run of a command with copies of its stack, and return the path of the recording.

    :param options: more options of ``perf record``; ``-o -`` records through a pipe.
    :param dump: number of bytes of stack in each sample.
    """
    return _record(command, folder, options, dump)


def _record(command: Sequence[str], folder: Path, options: Sequence[str], dump: int, **how: Any) -> Path:
    if shutil.which("perf") is None:
        absent("perf is not installed: recordings stay untested")
    recordings_needed()
    path = folder / "perf.data"
    place = [] if "-o" in options else ["-o", str(path)]
    event = [] if "-a" in options else ["-e", "cpu-clock:u"]
    usual = ["-q", *event, "-F", "499", "--call-graph", f"dwarf,{dump}"]
    line = ["perf", "record", *usual, *place, *options, "--", *command]
    done = subprocess.run(line, capture_output=True, timeout=SECONDS, check=False, **how)
    assert done.returncode in (0, 1), done.stderr
    if "-o" in options:
        path.write_bytes(done.stdout)
    return path
