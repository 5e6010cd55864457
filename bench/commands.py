"""Measures commands as a user waits for them: their start, dump, and lookups of many addresses."""

from __future__ import annotations

import os
import platform
import random
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import elftools

from bench import program
from bench.debuggers import CHECKOUT
from bench.report import SCALES, BenchError, Row, Target, Unavailable, medians, ratios
from bench.sample import recursion
from bench.timing import alternate
from sframe_unwind import elf
from tools.binutils import SFRAME_VERSIONS, ToolchainUnavailable, provide

PART = "command"
VERSION, START = Target(50), Target(110)
"""Milliseconds."""
SLOWER = Target(12)
LOOKUP = Target(2)
"""Microseconds."""
LOOKUPS = 100_000
ROUNDS = 5
_TIMEOUT = 300
_NOTHING = Path(os.devnull)
_RELEASE = next(release for release, version in SFRAME_VERSIONS.items() if version == 3)
_COMMAND = (sys.executable, "-m", "sframe_unwind")


def rows() -> Iterator[Row]:
    """Measure whole processes, from start to end."""
    what = f"{program.FUNCTIONS:,} functions"
    for python in _pythons():
        yield from _starts(python)
    try:
        path, tools = program.build(3), provide(_RELEASE, "x86_64")
    except (Unavailable, ToolchainUnavailable) as error:
        yield Row(part=PART, what=what, values=(), unit="", target=SLOWER, detail=str(error))
        return
    times = alternate(
        ROUNDS,
        {
            "dump": lambda: _run([*_COMMAND, "dump", str(path)]),
            "readelf": lambda: _run([str(tools / "readelf"), "--sframe", str(path)]),
        },
    )
    slower = ratios(times["dump"], times["readelf"])
    yield Row(
        part=PART,
        what=f"{what}: dump / readelf --sframe",
        values=slower,
        unit="x",
        target=SLOWER,
        detail=medians("s", **times),
    )
    yield _lookups(path)


class _Python(NamedTuple):
    """A Python that runs the command, as installed or from the checkout."""

    path: str
    environment: dict[str, str]
    name: str


def _pythons() -> Iterator[_Python]:
    """Yield this Python and the system's: importing takes twice as long in one that was built without optimization."""
    optimized = "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or "")
    how = "" if optimized else ", built without optimization"
    yield _Python(sys.executable, {}, f"Python {platform.python_version()}{how}")
    system = Path("/usr/bin/python3")
    if system.exists() and system.resolve() != Path(sys.executable).resolve():
        packages = Path(elftools.__file__).parents[1]
        environment = {"PYTHONPATH": f"{packages}{os.pathsep}{CHECKOUT}"}
        yield _Python(str(system), environment, "the system's Python")


def _starts(python: _Python) -> Iterator[Row]:
    try:
        file = recursion("O2")
    except Unavailable as error:
        yield Row(part=PART, what="start", values=(), unit="", target=START, detail=str(error))
        return
    command = [python.path, "-m", "sframe_unwind"]
    times = alternate(
        ROUNDS,
        {
            "version": lambda: _run([*command, "--version"], variables=python.environment),
            "dump": lambda: _run([*command, "dump", str(file)], variables=python.environment),
            "python": lambda: _run([python.path, "-c", "pass"]),
            "pyelftools": lambda: _run(
                [python.path, "-c", "import elftools.elf.elffile"], variables=python.environment
            ),
        },
    )
    detail = medians("ms", python=times["python"])
    yield Row(
        part=PART,
        what=f"--version, {python.name}",
        values=_milliseconds(times["version"]),
        unit="ms",
        target=VERSION,
        detail=detail,
    )
    detail = medians("ms", python=times["python"], pyelftools=times["pyelftools"])
    yield Row(
        part=PART,
        what=f"dump of a small program, {python.name}",
        values=_milliseconds(times["dump"]),
        unit="ms",
        target=START,
        detail=detail,
    )


def _lookups(path: Path) -> Row:
    """Measure what an address more costs: the time for many, less that for one."""
    (section,) = elf.load(path)
    functions = [extent for table in section.tables for extent in zip(*table.extents())]
    chosen = random.Random(0).choices(functions, k=LOOKUPS)
    addresses = [f"{start + size // 2:#x}\n" for start, size in chosen]
    with tempfile.TemporaryDirectory() as folder:
        # addr2line searches the symbols for each address one by one: all would take most of the time of the benchmark.
        files = {name: Path(folder) / name for name in ("many", "one", "addr2line_for_a_50th")}
        for file, count in zip(files.values(), (LOOKUPS, 1, LOOKUPS // 50)):
            file.write_text("".join(addresses[:count]), encoding="ascii")
        commands: dict[str, Sequence[str]] = {name: (*_COMMAND, "lookup", str(path), "-") for name in ("many", "one")}
        if peer := shutil.which("addr2line"):
            commands["addr2line_for_a_50th"] = (peer, "-f", "-e", str(path))
        times = alternate(ROUNDS, {name: partial(_run, command, files[name]) for name, command in commands.items()})
    each = [(more - less) / LOOKUPS * SCALES["µs"] for more, less in zip(times["many"], times["one"])]
    return Row(
        part=PART,
        what=f"lookup of {LOOKUPS:,} addresses, each",
        values=each,
        unit="µs",
        target=LOOKUP,
        detail=medians("s", **times),
    )


def _milliseconds(seconds: Sequence[float]) -> list[float]:
    return [one * SCALES["ms"] for one in seconds]


def _run(command: Sequence[str], stdin: Path = _NOTHING, variables: Mapping[str, str] | None = None) -> None:
    # Compiled modules are kept, as those of an installed package are.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with stdin.open("rb") as file:
        process = subprocess.Popen(
            command, env={**environment, **(variables or {})}, stdin=file, stdout=subprocess.DEVNULL
        )
    # With a time limit, subprocess asks ever more seldom whether the process has ended, at last every 50 ms.
    limit = threading.Timer(_TIMEOUT, process.kill)
    limit.start()
    try:
        process.wait()
    finally:
        limit.cancel()
    if process.returncode:
        raise BenchError(f"{' '.join(command)}: exit status {process.returncode}")
