"""Measures whole commands against the C tools that do the nearest work, and how their time grows with their input."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench import program
from bench.pairs import Pair, pair_row
from bench.processes import COMMAND, processor_time
from bench.report import Row, Target, Unavailable, medians, ratios
from bench.timing import in_turns
from tools.binutils import SFRAME_VERSIONS, ToolchainUnavailable, provide

PART = "peer"
ROUNDS = 7
SIZES = (1, 2, 4, 8)
"""Multiples of the functions of the smallest program."""
GROWTH = Target(1.1)
"""Limit of the time of the largest program divided by that of the smallest one and by the ratio of their sizes."""
_RELEASE = next(release for release, version in SFRAME_VERSIONS.items() if version == 3)
_LIBRARY = Path("/usr/lib/x86_64-linux-gnu/libstdc++.so.6")


def rows() -> Iterator[Row]:
    """Measure whole processes from start to end, each after its peer or before it."""
    try:
        tools = provide(_RELEASE, "x86_64")
        functions = program.build(3)
    except (Unavailable, ToolchainUnavailable) as error:
        yield Row(part=PART, what="commands", values=(), unit="x", target=GROWTH, detail=str(error))
        return
    for pair in _pairs(tools, functions):
        yield pair_row(PART, pair, ROUNDS)
    for name in ("verify", "dump"):
        yield _growth(name)


def _pairs(tools: Path, functions: Path) -> Iterator[Pair]:
    many, file = f"{program.FUNCTIONS:,} functions", str(functions)
    readelf = str(tools / "readelf")
    verify = (*COMMAND, "verify", file)
    frames = (readelf, "--debug-dump=frames-interp", file)
    yield Pair(f"verify of {many} / readelf --debug-dump=frames-interp", verify, frames, Target(6))
    yield Pair(
        f"verify of {many} / llvm-dwarfdump --eh-frame", verify, ("llvm-dwarfdump", "--eh-frame", file), Target(4)
    )
    by_code = (*COMMAND, "verify", "--against", "code", "-j", "1", str(_LIBRARY))
    yield Pair(
        f"verify --against code of {_LIBRARY.name} / objdump -d",
        by_code,
        (str(tools / "objdump"), "-d", str(_LIBRARY)),
        Target(15),
        statuses=(0, 1),
    )
    yield Pair(f"dump of {many} / readelf --sframe", (*COMMAND, "dump", file), (readelf, "--sframe", file), Target(3))


def _growth(name: str) -> Row:
    """Measure a command on programs of several sizes."""
    paths = {size: program.build(3, copies=size) for size in SIZES}
    times = in_turns(
        ROUNDS, {str(size): partial(processor_time, (*COMMAND, name, str(path))) for size, path in paths.items()}
    )
    smallest, largest = str(SIZES[0]), str(SIZES[-1])
    return Row(
        part=PART,
        what=f"{name}: growth from {program.FUNCTIONS:,} to {program.FUNCTIONS * SIZES[-1]:,} functions",
        values=[one / (SIZES[-1] / SIZES[0]) for one in ratios(times[largest], times[smallest])],
        unit="x",
        target=GROWTH,
        detail=medians("s", **times),
    )
