"""Measures ``verify --against code`` on libraries of the machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from bench.memory import peak
from bench.report import Row, Target
from sframe_unwind import elf
from sframe_unwind.verify.code_check import check_elf

PART = "against-code"
FASTER = Target(40_000, at_least=True)
MEMORY = Target(200)
LIBRARIES = ("libc.so.6", "libcrypto.so.3", "libstdc++.so.6")
FOLDER = Path("/usr/lib/x86_64-linux-gnu")
ROUNDS = 3

_CHECK = """
import sys
from sframe_unwind import elf
from sframe_unwind.verify.code_check import check_elf
with elf.opened(sys.argv[1]) as binary:
    check_elf(binary, None)
"""
_TIMEOUT = 900


def rows() -> Iterator[Row]:
    """Measure instructions per second of processor time, from opening the file on, and the peak memory."""
    for name in LIBRARIES:
        path, what = FOLDER / name, f"verify --against code {name}"
        if not path.exists():
            yield Row(PART, what, (), "", FASTER, "the library is not installed")
            continue
        yield Row(PART, f"{what}: instructions a second", [_speed(path) for _ in range(ROUNDS)], "", FASTER)
        yield Row(PART, f"{what}: peak memory", [peak(_CHECK, path, _TIMEOUT) * 1024 / 1e6], "MB", MEMORY)


def _speed(path: Path) -> float:
    before = time.process_time()
    with elf.opened(path) as binary:
        found = check_elf(binary, None)
    return found.instructions / (time.process_time() - before)
