"""The peak memory of a program in Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.report import BenchError

_REPORT = """
from pathlib import Path
print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
"""
"""Not ``ru_maxrss``: that begins with the size of the process that started this one."""


def peak(program: str, path: Path, seconds: float) -> int:
    """Run a program in a process of its own; return its peak memory in KiB.

    :param program: its source, which finds the path in ``sys.argv[1]``.
    :raises BenchError: it fails.
    """
    return int(printed(program, path, seconds)[-1])


def printed(program: str, path: Path, seconds: float) -> list[str]:
    """Run a program as :func:`peak` does; return the words that it prints, and its peak memory in KiB as the last."""
    command = [sys.executable, "-c", program + _REPORT, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    if done.returncode:
        raise BenchError(f"memory: exit status {done.returncode}: {done.stderr.strip()[-200:]}")
    return done.stdout.split()
