"""Measures whole commands against the C tools that do the nearest work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench import program
from bench.pairs import Pair, pair_row
from bench.processes import COMMAND
from bench.report import Row, Target, Unavailable
from tools.binutils import SFRAME_VERSIONS, ToolchainUnavailable, provide

PART = "peer"
VERIFY, DUMP, SHOW = Target(6), Target(3), Target(2)
"""Limits of the time divided by that of readelf, and of objdump."""
_RELEASE = next(release for release, version in SFRAME_VERSIONS.items() if version == 3)
_LIBRARY, _C_LIBRARY = (Path("/usr/lib/x86_64-linux-gnu", name) for name in ("libstdc++.so.6", "libc.so.6"))


def rows() -> Iterator[Row]:
    """Measure whole processes from start to end, each after its peer or before it."""
    try:
        tools = provide(_RELEASE, "x86_64")
        functions = program.build(3)
    except (Unavailable, ToolchainUnavailable) as error:
        yield Row(part=PART, what="commands", values=(), unit="x", target=VERIFY, detail=str(error))
        return
    for pair in _pairs(tools, functions):
        yield pair_row(PART, pair)


def _pairs(tools: Path, functions: Path) -> Iterator[Pair]:
    many, file = f"{program.FUNCTIONS:,} functions", str(functions)
    readelf = str(tools / "readelf")
    verify = (*COMMAND, "verify", file)
    frames = (readelf, "--debug-dump=frames-interp", file)
    yield Pair(f"verify of {many} / readelf --debug-dump=frames-interp", verify, frames, VERIFY)
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
        rounds=3,
    )
    yield Pair(
        f"show of all functions of {_C_LIBRARY.name}, one process / objdump -d",
        (*COMMAND, "show", "-j", "1", str(_C_LIBRARY)),
        (str(tools / "objdump"), "-d", str(_C_LIBRARY)),
        SHOW,
        statuses=(0, 1),
    )
    yield Pair(f"dump of {many} / readelf --sframe", (*COMMAND, "dump", file), (readelf, "--sframe", file), DUMP)
