"""What loading the plugin adds to LLDB's start."""

from __future__ import annotations

from collections.abc import Iterator

from bench.lldbs import IMPORT, Lldb, all_lldbs
from bench.report import SCALES, BenchError, Row, Target, medians
from bench.starting import ROUNDS
from bench.timing import alternate

PART = "lldb-start"
AT_MOST = Target(100)
"""Milliseconds."""


def rows() -> Iterator[Row]:
    """Measure; the round that does not count leaves the compiled modules behind."""
    lldbs = all_lldbs()
    if not lldbs:
        yield Row(PART, "LLDB from PyPI", (), "", AT_MOST, "not in this environment")
    yield from map(_added, lldbs)


def _added(lldb: Lldb) -> Row:
    load = ("-O", IMPORT)
    said = lldb.run(*load, "-o", "sframe mode")
    if "mode always" not in said:
        raise BenchError(f"{lldb.name}: the plugin did not start: {said.strip()}")
    # Python itself is started in either case: LLDB does that when it is first wanted.
    python = ("-O", "script None")
    times = alternate(ROUNDS, {"with": lambda: lldb.run(*python, *load), "without": lambda: lldb.run(*python)})
    added = [(more - less) * SCALES["ms"] for more, less in zip(times["with"], times["without"])]
    return Row(PART, f"{lldb.name}: loading the plugin", added, "ms", AT_MOST, medians("ms", **times))
