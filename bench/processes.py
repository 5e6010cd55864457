"""Measures whole processes in processor time: other work on the machine changes that less than the time on the wall."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Sequence

from bench.report import BenchError

COMMAND = (sys.executable, "-m", "sframe_unwind")
_TIMEOUT = 600
_SLOWER = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
"""Environment variables that slow Python down: no compiled modules are kept, or no output is buffered."""


def usual_environment() -> dict[str, str]:
    """Return the environment of this process without what makes Python slower than users have it."""
    return {name: value for name, value in os.environ.items() if name not in _SLOWER}


def processor_time(command: Sequence[str], statuses: Sequence[int] = (0,)) -> float:
    """Run a command without its output, and return its processor time in seconds.

    :param statuses: the expected exit statuses.
    :raises BenchError: it ended with another one.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=_TIMEOUT,
        check=False,
        env=usual_environment(),
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in statuses:
        raise BenchError(f"{' '.join(command)}: exit status {done.returncode}: {done.stderr[-200:]!r}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
