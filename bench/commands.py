"""Measures commands as a user waits for them: their start, dump, and lookups of many addresses."""

from __future__ import annotations

import os
import platform
import random
import shutil
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterator, Sequence
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
VERSION, START = Target(50), Target(80)
"""Milliseconds."""
SLOWER = Target(12)
LOOKUP = Target(2)
"""Microseconds."""
LOOKUPS = 100_000
ROUNDS = 5
_TIMEOUT = 300
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
        yield Row(PART, what, (), "", SLOWER, str(error))
        return
    times = alternate(
        ROUNDS,
        {
            "dump": lambda: _run([*_COMMAND, "dump", str(path)]),
            "readelf": lambda: _run([str(tools / "readelf"), "--sframe", str(path)]),
        },
    )
    slower = ratios(times["dump"], times["readelf"])
    yield Row(PART, f"{what}: dump / readelf --sframe", slower, "x", SLOWER, medians("s", **times))
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
        yield Row(PART, "start", (), "", START, str(error))
        return
    command = [python.path, "-m", "sframe_unwind"]
    times = alternate(
        ROUNDS,
        {
            "version": lambda: _run([*command, "--version"], **python.environment),
            "dump": lambda: _run([*command, "dump", str(file)], **python.environment),
            "python": lambda: _run([python.path, "-c", "pass"]),
            "pyelftools": lambda: _run([python.path, "-c", "import elftools.elf.elffile"], **python.environment),
        },
    )
    detail = medians("ms", python=times["python"])
    yield Row(PART, f"--version, {python.name}", _milliseconds(times["version"]), "ms", VERSION, detail)
    detail = medians("ms", python=times["python"], pyelftools=times["pyelftools"])
    yield Row(PART, f"dump of a small program, {python.name}", _milliseconds(times["dump"]), "ms", START, detail)


def _lookups(path: Path) -> Row:
    """Measure what an address more costs: the time for many, less that for one."""
    (section,) = elf.load(path)
    functions = [extent for table in section.tables for extent in zip(*table.extents())]
    chosen = random.Random(0).choices(functions, k=LOOKUPS)
    many = "".join(f"{start + size // 2:#x}\n" for start, size in chosen)
    one, _, _ = many.partition("\n")
    command = [*_COMMAND, "lookup", str(path), "-"]
    actions = {"many": lambda: _run(command, many), "one": lambda: _run(command, f"{one}\n")}
    peer = shutil.which("addr2line")
    if peer:
        # It searches the symbols for each address one by one, and would take most of the time of the benchmark.
        few = "".join(many.splitlines(keepends=True)[: LOOKUPS // 50])
        actions["addr2line_for_a_50th"] = lambda: _run([peer, "-f", "-e", str(path)], few)
    times = alternate(ROUNDS, actions)
    each = [(more - less) / LOOKUPS * SCALES["µs"] for more, less in zip(times["many"], times["one"])]
    return Row(PART, f"lookup of {LOOKUPS:,} addresses, each", each, "µs", LOOKUP, medians("s", **times))


def _milliseconds(seconds: Sequence[float]) -> list[float]:
    return [one * SCALES["ms"] for one in seconds]


def _run(command: Sequence[str], text: str = "", **variables: str) -> None:
    # Compiled modules are kept, as those of an installed package are.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(
        command, env={**environment, **variables}, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    # With a time limit, subprocess asks ever more seldom whether the process has ended, at last every 50 ms.
    limit = threading.Timer(_TIMEOUT, process.kill)
    limit.start()
    try:
        process.communicate(text)
    finally:
        limit.cancel()
    if process.returncode:
        raise BenchError(f"{' '.join(command)}: exit status {process.returncode}")
