"""Measures the time that loading the plugin adds to the start of LLDB."""

from __future__ import annotations

from collections.abc import Iterator

from bench.lldbs import IMPORT, Lldb, all_lldbs
from bench.report import SCALES, BenchError, Row, Target, medians
from bench.starting import ROUNDS
from bench.timing import alternate

PART = "lldb-start"
AT_MOST = Target(10)
"""Milliseconds."""


def rows() -> Iterator[Row]:
    """Measure.  The warm-up round creates the compiled modules."""
    lldbs = all_lldbs()
    if not lldbs:
        yield Row(
            part=PART, what="LLDB from PyPI", values=(), unit="", target=AT_MOST, detail="not in this environment"
        )
    yield from map(_added, lldbs)


def _added(lldb: Lldb) -> Row:
    load = ("-O", IMPORT)
    said = lldb.run(*load, "-o", "sframe mode")
    if "mode auto" not in said:
        raise BenchError(f"{lldb.name}: the plugin did not start: {said.strip()}")
    # Both sides start Python, which LLDB does on its first use.
    python = ("-O", "script None")
    times = alternate(ROUNDS, {"with": lambda: lldb.run(*python, *load), "without": lambda: lldb.run(*python)})
    added = [(more - less) * SCALES["ms"] for more, less in zip(times["with"], times["without"])]
    return Row(
        part=PART,
        what=f"{lldb.name}: loading the plugin",
        values=added,
        unit="ms",
        target=AT_MOST,
        detail=medians("ms", **times),
    )
