"""Measures LLDB's `bt` over a deep stack in the modes of the plugin."""

from __future__ import annotations

from collections.abc import Iterator

from bench.backtraces import ROUNDS, VARIANTS
from bench.lldbs import Lldb, all_lldbs
from bench.report import Row, Target, Unavailable, medians, ratios
from bench.sample import DEPTH, FRAMES, recursion

PART = "lldb-bt"
AT_MOST = Target(1.4)
"""Mode ``always`` over mode ``off``."""
STRICT_AT_MOST = Target(1.6)
"""The same limit if each frame is SFrame's own."""


def rows() -> Iterator[Row]:
    """Measure a stop followed by `bt`."""
    lldbs = all_lldbs()
    if not lldbs:
        yield Row(PART, "LLDB from PyPI", (), "", AT_MOST, "not in this environment")
    for lldb in lldbs:
        for variant in VARIANTS:
            try:
                yield from _of(lldb, variant)
            except Unavailable as error:
                yield Row(PART, f"{lldb.name}, recursion {variant}", (), "", AT_MOST, str(error))


def _of(lldb: Lldb, variant: str) -> Iterator[Row]:
    # A second provider, even one that does not apply, makes LLDB 22.1 take 16 times as long for LLDB's own frames.
    for measured in (
        {"always": ("mode always", AT_MOST), "strict": ("mode strict", STRICT_AT_MOST)},
        {"least": ("the least of a script", None)},
    ):
        modes = ["off", *measured]
        times = lldb.call(recursion(variant), "backtraces", depth=DEPTH, rounds=ROUNDS, frames=FRAMES, modes=modes)
        for mode, (meaning, target) in measured.items():
            what = f"{lldb.name}, recursion {variant}: {meaning} / off"
            detail = medians("ms", **{mode: times[mode], "off": times["off"]})
            yield Row(PART, what, ratios(times[mode], times["off"]), "x", target, detail)
