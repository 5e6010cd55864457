"""The programs of the study: how they are built, and the work that is recorded."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Callable, NamedTuple

from lab.real_programs import PROGRAMS, TIMEOUT, VERSION_FILE, Program, compiled, sources

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "study"
FOLDER = Path(__file__).parent
BUILDS = {"without": ("-fomit-frame-pointer",), "with": ("-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer")}
"""Options of GCC by whether code keeps frame pointers."""
PORT = "7379"
_HIREDIS = ("alloc", "async", "hiredis", "net", "read", "sds", "sockcompat")
_OF_BENCHMARK = (
    *("ae", "anet", "redis-benchmark", "adlist", "dict", "zmalloc", "redisassert", "release", "crcspeed", "crc64"),
    *("siphash", "crc16", "monotonic", "cli_common", "mt19937-64"),
)
_REDIS_BENCHMARK = PROGRAMS["redis"]._replace(
    sources=(
        *(f"src/{name}.c" for name in _OF_BENCHMARK),
        *(f"deps/hiredis/{name}.c" for name in _HIREDIS),
        "deps/hdr_histogram/hdr_histogram.c",
    ),
    left_out=(),
)
_COMPILED = FOLDER.parents[1] / "tests" / "perf" / "threads.cpp"


class Work(NamedTuple):
    """What is recorded."""

    command: Sequence[str]
    beside: Sequence[str] = ()
    """A command that runs at the same time, and is not recorded."""


class Case(NamedTuple):
    """One program with its work."""

    version: Callable[[], str]
    """Returns name and version."""
    build: Callable[[str], Path] | None
    """Builds the program as one of :data:`BUILDS`, if necessary; ``None``: it is Debian's, as it is installed."""
    work: Callable[[Path], Work]


def _kept(name: str, how: str, make: Callable[[Path], Path]) -> Path:
    """Return a program that was built before, or build it in a folder of its own."""
    folder = CACHE / f"{name}-{how}"
    done = folder / "done"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        done.write_text(str(make(folder)))
    return Path(done.read_text())


def _built(program: Program, name: str, how: str) -> Path:
    flags = BUILDS[how]
    return _kept(name, how, lambda folder: compiled(program, "amd64", folder / "built", flags)[1])


def _redis(program: Path) -> Work:
    clients = _built(_REDIS_BENCHMARK, "redis-benchmark", "without")
    return Work(
        [str(program), "--port", PORT, "--save", "", "--bind", "127.0.0.1"],
        ["sh", str(FOLDER / "redis.sh"), str(clients), PORT],
    )


def _interpreter(_program: Path) -> Work:
    return Work(["/usr/bin/python3", str(FOLDER / "work.py")])


def _sqlite(program: Path) -> Work:
    return Work([str(program), ":memory:", f".read {FOLDER / 'work.sql'}"])


def _zstd(program: Path) -> Work:
    return Work([str(program), "-q", "-b3", "-e9", "-i1", str(sources(PROGRAMS["sqlite3"]) / "sqlite3.c")])


def _compiler(_program: Path) -> Work:
    return Work(["g++", "-O2", "-c", "-pthread", str(_COMPILED), "-o", "/dev/null"])


def _of_sources(program: Program) -> Callable[[], str]:
    return lambda: f"{program.name} {(sources(program) / VERSION_FILE).read_text().strip()}"


def _installed(name: str, *command: str) -> Callable[[], str]:
    """Return a function that returns the name of a program of Debian, and the version that a command prints."""

    def version() -> str:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT)
        return f"{name} {done.stdout.split()[-1]}"

    return version


def _case(name: str, work: Callable[[Path], Work]) -> Case:
    program = PROGRAMS[name]
    return Case(_of_sources(program), lambda how: _built(program, name, how), work)


CASES = {
    "redis": _case("redis", _redis),
    "python3": Case(_installed("python3", "/usr/bin/python3", "--version"), None, _interpreter),
    "sqlite3": _case("sqlite3", _sqlite),
    "zstd": _case("zstd", _zstd),
    "c++": Case(_installed("cc1plus", "g++", "-dumpfullversion"), None, _compiler),
}
