"""Moving a C++ program in LLDB, where most stops are LLDB's own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bench.lldbs import Lldb, all_lldbs
from bench.report import Row, Target, Unavailable, medians, ratios
from bench.timing import in_turns
from lab.lldb.driving import program
from tools.binutils import ToolchainUnavailable

PART = "lldb-drive"
AT_MOST = Target(1.3)
"""Mode ``always`` over mode ``off``."""
ROUNDS = 5
_COMMANDS = ["next"] * 5 + ["step"] * 10 + ["next"] * 5 + ["step"] * 5


def rows() -> Iterator[Row]:
    """Measure; each round is a session of its own, so that nothing is known beforehand."""
    lldbs = all_lldbs()
    if not lldbs:
        yield Row(
            part=PART, what="LLDB from PyPI", values=(), unit="", target=AT_MOST, detail="not in this environment"
        )
    yield from map(_of, lldbs)


def _of(lldb: Lldb) -> Row:
    try:
        executable = program()
    except ToolchainUnavailable as error:
        raise Unavailable(str(error)) from error

    def seconds(mode: str) -> float:
        value: float = lldb.call(executable, "driving", mode=mode, commands=_COMMANDS)
        return value

    measures = {mode: partial(seconds, mode) for mode in ("off", "always")}
    in_turns(1, measures)  # warms up
    times = in_turns(ROUNDS, measures)
    what = f"{lldb.name}, {len(_COMMANDS)} commands: mode always / off"
    return Row(
        part=PART,
        what=what,
        values=ratios(times["always"], times["off"]),
        unit="x",
        target=AT_MOST,
        detail=medians("ms", **times),
    )
