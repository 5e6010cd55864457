"""Measures ``verify --against code`` on libraries of the machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.memory import printed
from bench.report import Row, Target

PART = "against-code"
FASTER = Target(40_000, at_least=True)
"""Instructions per second of processor time."""
MEMORY = Target(200)
"""Megabytes."""
LIBRARIES = ("libc.so.6", "libcrypto.so.3", "libstdc++.so.6")
FOLDER = Path("/usr/lib/x86_64-linux-gnu")
ROUNDS = 2

_CHECK = """
import sys, time
from sframe_unwind import elf
from sframe_unwind.verify.code_check import check_elf
with elf.opened(sys.argv[1]) as binary:
    found = check_elf(binary, None)
print(found.instructions / time.process_time())
"""
"""Prints instructions per second of processor time, start-up included."""
_TIMEOUT = 900


def rows() -> Iterator[Row]:
    """Measure instructions per second of processor time and the peak memory, each round in a process of its own."""
    for name in LIBRARIES:
        path, what = FOLDER / name, f"verify --against code {name}"
        if not path.exists():
            yield Row(part=PART, what=what, values=(), unit="", target=FASTER, detail="the library is not installed")
            continue
        runs = [[float(word) for word in printed(_CHECK, path, _TIMEOUT)] for _ in range(ROUNDS)]
        yield Row(PART, f"{what}: instructions a second", [speed for speed, _ in runs], "", FASTER)
        yield Row(PART, f"{what}: peak memory", [memory * 1024 / 1e6 for _, memory in runs], "MB", MEMORY)
