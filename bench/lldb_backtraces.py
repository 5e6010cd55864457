"""Measures LLDB's `bt` over a deep stack in the modes of the plugin."""

from __future__ import annotations

from collections.abc import Iterator

from bench.backtraces import AT_MOST, ROUNDS, VARIANTS
from bench.lldbs import Lldb, all_lldbs
from bench.report import Row, Unavailable, medians, ratios
from bench.sample import DEPTH, FRAMES, recursion

PART = "lldb-bt"


def rows() -> Iterator[Row]:
    """Measure a stop followed by `bt`."""
    lldbs = all_lldbs()
    if not lldbs:
        yield Row(PART, "LLDB from PyPI", (), "", AT_MOST, "not in this environment")
    for lldb in lldbs:
        for variant in VARIANTS:
            try:
                yield _of(lldb, variant)
            except Unavailable as error:
                yield Row(PART, f"{lldb.name}, recursion {variant}", (), "", AT_MOST, str(error))


def _of(lldb: Lldb, variant: str) -> Row:
    times = lldb.call(recursion(variant), depth=DEPTH, rounds=ROUNDS, frames=FRAMES)
    what = f"{lldb.name}, recursion {variant}: mode always / off"
    return Row(PART, what, ratios(times["always"], times["off"]), "x", AT_MOST, medians("ms", **times))
