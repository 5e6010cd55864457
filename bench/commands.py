"""Measures what the commands take to start, beside Python itself, and lookups of many addresses."""

from __future__ import annotations

import platform
import random
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench import program
from bench.debuggers import CHECKOUT
from bench.pairs import Pair, pair_row
from bench.processes import COMMAND, usual_environment
from bench.report import SCALES, BenchError, Row, Target, Unavailable, medians
from bench.sample import recursion
from bench.timing import alternate
from sframe_unwind import elf

PART = "command"
VERSION, START = Target(1.8), Target(4)
"""Limits of the processor time divided by that of ``python -c pass``."""
LOOKUP = Target(4)
"""Microseconds; the noise of a busy machine is 1."""
LOOKUPS = 100_000
ROUNDS = 5
_TIMEOUT = 300


def rows() -> Iterator[Row]:
    """Measure whole processes, from start to end."""
    try:
        file, path = recursion("O2"), program.build(3)
    except Unavailable as error:
        yield Row(part=PART, what="commands", values=(), unit="x", target=START, detail=str(error))
        return
    for python in _pythons():
        command = (*python.start, "-m", "sframe_unwind")
        for what, arguments, target in (
            ("--version", ("--version",), VERSION),
            ("dump of a small program", ("dump", str(file)), START),
        ):
            name = f"{what} / python -c pass, {python.name}"
            yield pair_row(PART, Pair(name, (*command, *arguments), (*python.start, "-c", "pass"), target))
    yield _lookups(path)


class _Python(NamedTuple):
    """A Python that runs the command, as installed or from the checkout."""

    start: tuple[str, ...]
    """The words that start it."""
    name: str


def _pythons() -> Iterator[_Python]:
    """Yield this Python and the system's: importing takes twice as long in one that was built without optimization."""
    optimized = "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or "")
    how = "" if optimized else ", built without optimization"
    yield _Python((sys.executable,), f"Python {platform.python_version()}{how}")
    system = Path("/usr/bin/python3")
    if system.exists() and system.resolve() != Path(sys.executable).resolve():
        yield _Python(("env", f"PYTHONPATH={CHECKOUT}", str(system)), "the system's Python")


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
        commands: dict[str, Sequence[str]] = {name: (*COMMAND, "lookup", str(path), "-") for name in ("many", "one")}
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


def _run(command: Sequence[str], stdin: Path) -> None:
    with stdin.open("rb") as file:
        process = subprocess.Popen(command, env=usual_environment(), stdin=file, stdout=subprocess.DEVNULL)
    # With a time limit, subprocess asks ever more seldom whether the process has ended, at last every 50 ms.
    limit = threading.Timer(_TIMEOUT, process.kill)
    limit.start()
    try:
        process.wait()
    finally:
        limit.cancel()
    if process.returncode:
        raise BenchError(f"{' '.join(command)}: exit status {process.returncode}")
