"""Measures the time that sourcing the plugin adds to the start of GDB."""

from __future__ import annotations

from collections.abc import Iterator

from bench.debuggers import PLUGIN, Gdb, all_gdbs
from bench.report import SCALES, BenchError, Row, Target, medians
from bench.timing import alternate

PART = "start"
AT_MOST = Target(10)
"""Milliseconds."""
ROUNDS = 15


def rows() -> Iterator[Row]:
    """Measure.  The warm-up round creates the compiled modules."""
    gdbs = all_gdbs()
    if not any(gdb.installed for gdb in gdbs):
        yield Row(part=PART, what="GDB from PyPI", values=(), unit="", target=AT_MOST, detail="not in this environment")
    yield from map(_added, gdbs)


def _added(gdb: Gdb) -> Row:
    source = ("-iex", f"source {PLUGIN}")
    said = gdb.run(*source, "-ex", "show sframe mode")
    if "auto" not in said:
        raise BenchError(f"{gdb.name}: the plugin did not start: {said.strip()}")
    times = alternate(ROUNDS, {"with": lambda: gdb.run(*source), "without": lambda: gdb.run()})
    added = [(more - less) * SCALES["ms"] for more, less in zip(times["with"], times["without"])]
    return Row(
        part=PART,
        what=f"{gdb.name}: sourcing the plugin",
        values=added,
        unit="ms",
        target=AT_MOST,
        detail=medians("ms", **times),
    )
