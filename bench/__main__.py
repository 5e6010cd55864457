"""Run the benchmarks, print one table, and tell whether the targets are met."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import elftools

from bench import (
    against_code,
    backtraces,
    by_code,
    commands,
    converted,
    converting,
    decoding,
    driving,
    growth,
    lldb_backtraces,
    lldb_deep,
    lldb_driving,
    lldb_memory,
    lldb_moving,
    lldb_starting,
    opening,
    peers,
    profiles,
    results,
    runtime_code,
    serving,
    starting,
    surveying,
    unaided,
    verifying,
    walking,
)
from bench.report import BenchError, Row, table
from tools.ending import exit_with

_MODULES = (
    *(
        starting,
        commands,
        peers,
        growth,
        opening,
        decoding,
        verifying,
        against_code,
        converting,
        surveying,
        walking,
        unaided,
        serving,
        profiles,
    ),
    *(backtraces, runtime_code, driving, converted, lldb_starting, lldb_backtraces),
    *(lldb_driving, lldb_moving, lldb_deep, lldb_memory, by_code),
)
PARTS = {module.PART: module for module in _MODULES}
GROUPS = {
    "core": (
        "command",
        "peer",
        "growth",
        "open",
        "decode",
        "verify",
        "against-code",
        "convert",
        "survey",
        "walk",
        "backtrace",
        "server",
        "perf",
    ),
    "gdb": ("start", "bt", "run-time", "drive"),
    "native": ("converted-bt",),
    "both": ("by-code",),
    "lldb": ("lldb-start", "lldb-bt", "lldb-drive", "lldb-move", "lldb-deep", "lldb-memory"),
}

_EPILOG = """\
parts:
{parts}
groups: {groups}

All is measured side by side with what it is compared to, in alternation. The median of the rounds counts: of their
ratios or differences, where there are two. Other work on the machine makes the maxima larger, and the medians hardly.

exit status: 0 all targets met; 1 one is missed or cannot be measured here; 2 something does not work
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks; return the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    names = [name for chosen in options.parts or PARTS for name in GROUPS.get(chosen, (chosen,))]
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        parser.error(f"no such part: {unknown[0]}; there are {', '.join((*PARTS, *GROUPS))}")
    if platform.machine() != "x86_64":
        parser.error(f"the programs to measure with are for x86_64, this is {platform.machine()}")
    started = time.monotonic()
    rows: list[Row] = []
    parts: dict[str, Any] = {}
    failed = False
    for name in [name for name in PARTS if name in names]:
        if sys.stderr.isatty():
            print(f"bench: {name} ...", file=sys.stderr, flush=True)
        try:
            where, found = results.circumstances(), list(PARTS[name].rows())
            rows += found
            parts[name] = {**where, "rows": results.to_json(found)}
        except BenchError as error:
            print(f"bench: {name}: {error}", file=sys.stderr, flush=True)
            failed = True
    print("\n".join(table(rows)))
    if options.json is not None:
        results.write(options.json, parts)
    missed = [row for row in rows if row.verdict in ("over", "not measured")]
    print(f"\n{_verdict(rows, missed)}; {_circumstances()}, {time.monotonic() - started:.0f} s")
    if failed:
        return 2
    return 1 if missed and options.fail else 0


def _parser() -> argparse.ArgumentParser:
    width = max(map(len, PARTS)) + 2
    parts = "\n".join(f"  {name:{width}}{(module.__doc__ or '').splitlines()[0]}" for name, module in PARTS.items())
    groups = ", ".join(f"{name} ({' '.join(members)})" for name, members in GROUPS.items())
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description=__doc__,
        epilog=_EPILOG.format(parts=parts, groups=groups),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help="a part or a group of them; default: all")
    parser.add_argument(
        "--json",
        metavar="FILE",
        type=Path,
        help="also write the results to a file, which keeps those of other parts; docs/performance.md is made from"
        f" bench/{results.RESULTS.name} by python -m bench.page",
    )
    parser.add_argument("--no-fail", dest="fail", action="store_false", help="exit status 0 even if a target is missed")
    return parser


def _verdict(rows: Sequence[Row], missed: Sequence[Row]) -> str:
    targets = sum(row.target is not None for row in rows)
    return f"{targets - len(missed)} of {targets} targets met"


def _circumstances() -> str:
    return (
        f"Python {platform.python_version()}, pyelftools {elftools.__version__},"
        f" {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"
    )


if __name__ == "__main__":
    exit_with(main)
