"""Measures the comparison of SFrame with DWARF unwind data, against pyelftools decoding the latter only."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench import program
from bench.decoding import decode_dwarf
from bench.report import BenchError, Row, Target, Unavailable, medians, ratios
from bench.timing import alternate
from sframe_unwind.verify import verify

PART = "verify"
SLOWER = Target(0.3)
MEMORY = Target(100)
ROUNDS = 3

_PEAK = """
import sys
from pathlib import Path
from sframe_unwind.verify import verify
verify(sys.argv[1])
print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
"""
"""Not ``ru_maxrss``: that begins with the size of the process that started this one."""
_TIMEOUT = 300


def rows() -> Iterator[Row]:
    """Measure the time from opening the file to the verdict, and the peak memory of a separate process."""
    what = f"{program.FUNCTIONS:,} functions"
    try:
        path = program.build(3)
    except Unavailable as error:
        yield Row(PART, what, (), "", SLOWER, str(error))
        return
    times = alternate(ROUNDS, {"verify": lambda: _verify(path), "pyelftools": lambda: decode_dwarf(path)})
    slower = ratios(times["verify"], times["pyelftools"])
    yield Row(PART, f"{what}: verify / pyelftools", slower, "x", SLOWER, medians("s", **times))
    yield Row(PART, f"{what}: peak memory", [_peak(path)], "MB", MEMORY)


def _verify(path: Path) -> None:
    verdict = verify(path)
    if verdict.both != program.FUNCTIONS or verdict.disagreements:
        found = f"{verdict.both} functions and {len(verdict.disagreements)} disagreements"
        raise BenchError(f"{path}: {found}, expected {program.FUNCTIONS} and none")


def _peak(path: Path) -> float:
    """Return the peak memory in millions of bytes."""
    command = [sys.executable, "-c", _PEAK, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    if done.returncode:
        raise BenchError(f"verify: exit status {done.returncode}: {done.stderr.strip()[-200:]}")
    return int(done.stdout) * 1024 / 1e6
