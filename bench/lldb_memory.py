"""Measures by how much LLDB grows from stop to stop, with frames of its own, of SFrame, and of any script."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.compiling import compiled
from bench.lldbs import Lldb, all_lldbs
from bench.report import Row, Target, Unavailable

PART = "lldb-memory"
STOPS = 1_000
DEPTH = 45
AT_MOST = Target(10)
"""MB over mode ``off``, where LLDB's frames are the right ones."""
_MEANINGS = {
    "always": ("mode always", AT_MOST),
    "strict": ("mode strict", None),
    "least": ("the least of a script", None),
}


def rows() -> Iterator[Row]:
    """Measure the resident memory of LLDB, once for each mode, in a session of its own."""
    lldbs = all_lldbs()
    if not lldbs:
        yield Row(
            part=PART, what="LLDB from PyPI", values=(), unit="", target=AT_MOST, detail="not in this environment"
        )
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "driving"
        try:
            compiled("driving.c", program, "-g", "-ldl")
        except Unavailable as error:
            yield Row(part=PART, what="stops", values=(), unit="", target=AT_MOST, detail=str(error))
            return
        for lldb in lldbs:
            yield from _of(lldb, program)


def _of(lldb: Lldb, program: Path) -> Iterator[Row]:
    def grown(mode: str) -> float:
        value: float = lldb.call(program, "growth", stops=STOPS, mode=mode, program_arguments=f"{DEPTH} 1000000")
        return value

    off = grown("off")
    for mode, (meaning, target) in _MEANINGS.items():
        what = f"{lldb.name}, {STOPS:,} stops at depth {DEPTH}: {meaning} - off"
        yield Row(
            part=PART, what=what, values=[grown(mode) - off], unit="MB", target=target, detail=f"off {off:.1f} MB"
        )
