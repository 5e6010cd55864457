"""Measures LLDB's `bt` over a deep stack in the modes of the plugin."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bench.backtraces import ROUNDS, VARIANTS
from bench.lldbs import Lldb, all_lldbs
from bench.report import Row, Target, Unavailable, medians, ratios
from bench.sample import DEPTH_IN_DEBUGGERS, IN_DEBUGGERS, recursion
from bench.timing import in_turns

PART = "lldb-bt"
AT_MOST = Target(1.4)
"""Mode ``always`` over mode ``off``."""
STRICT_AT_MOST = Target(1.6)
"""Mode ``strict``, in which SFrame makes each frame, over mode ``off``."""
OVER_LEAST_AT_MOST = Target(1.15)
"""Mode ``strict`` over the shortest script that makes frames: what the frames of any script cost."""
PAIRS = 3
"""Number of sessions in mode ``strict``, and of those with the shortest script."""


def rows() -> Iterator[Row]:
    """Measure a stop followed by `bt`."""
    lldbs = all_lldbs()
    if not lldbs:
        yield Row(
            part=PART, what="LLDB from PyPI", values=(), unit="", target=AT_MOST, detail="not in this environment"
        )
    for lldb in lldbs:
        for variant in VARIANTS:
            try:
                yield from _of(lldb, variant)
            except Unavailable as error:
                yield Row(
                    part=PART,
                    what=f"{lldb.name}, recursion {variant}",
                    values=(),
                    unit="",
                    target=AT_MOST,
                    detail=str(error),
                )


def _of(lldb: Lldb, variant: str) -> Iterator[Row]:
    def times(rounds: int, *modes: str) -> dict[str, list[float]]:
        measured: dict[str, list[float]] = lldb.call(
            recursion(variant),
            "backtraces",
            depth=DEPTH_IN_DEBUGGERS,
            rounds=rounds,
            frames=IN_DEBUGGERS,
            modes=list(modes),
        )
        return measured

    def once(mode: str) -> float:
        return times(1, mode)[mode][0]

    name = f"{lldb.name}, recursion {variant}"
    modes = times(ROUNDS, "off", "always", "strict")
    for mode, target in (("always", AT_MOST), ("strict", STRICT_AT_MOST)):
        detail = medians("ms", **{mode: modes[mode], "off": modes["off"]})
        yield Row(
            part=PART,
            what=f"{name}: mode {mode} / off",
            values=ratios(modes[mode], modes["off"]),
            unit="x",
            target=target,
            detail=detail,
        )
    # Each is measured in a session of its own: with a second provider, even one that does not apply, LLDB 22.1 takes
    # 16 times as long for its own frames.
    turns = in_turns(PAIRS, {mode: partial(once, mode) for mode in ("strict", "least")})
    what = f"{name}: mode strict / the least of a script"
    yield Row(
        part=PART,
        what=what,
        values=ratios(turns["strict"], turns["least"]),
        unit="x",
        target=OVER_LEAST_AT_MOST,
        detail=medians("ms", **turns),
    )
