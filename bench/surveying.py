"""Measures surveys: what a second process gains, whether cost grows with the number of files alone, and memory."""

from __future__ import annotations

import resource
import sqlite3
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from bench.report import BenchError, Row, Target, medians, ratios
from bench.timing import alternate
from sframe_unwind.survey.rows import SURVEYED, SurveyPlan
from sframe_unwind.survey.running import Survey, local_workers
from sframe_unwind.survey.store import Store

PART = "survey"
FASTER = Target(1.7, at_least=True)
"""Wall-clock time with one process over that with two."""
GROWTH = Target(1.2)
"""Processor time of one of many files over that of one of few."""
MEMORY = Target(1000)
"""Peak memory of a process in megabytes."""
ROUNDS = 3
CODE, PLAIN = SurveyPlan(convert=True, code=True), SurveyPlan(convert=True)
LIBRARIES, LARGEST = 60, 80_000
"""How many of the system's libraries are surveyed with their code, and the size limit of each in bytes."""
FEW, MANY = 100, 2000
"""Files of the two surveys whose cost is compared."""


class Result(NamedTuple):
    """The contents of a database."""

    files: int
    functions: int
    instructions: int
    peak: int
    """The most memory of a process, in bytes."""


def rows() -> Iterator[Row]:
    """Measure wall-clock time with one and two processes, and processor time with few and many files."""
    libraries = _libraries()
    if len(libraries) < LIBRARIES:
        raise BenchError(f"survey: {len(libraries)} small libraries in /usr/lib, expected {LIBRARIES}")
    found: dict[int, Result] = {}

    def survey(jobs: int) -> None:
        found[jobs] = _survey(libraries, CODE, jobs)

    actions = {"1 process": lambda: survey(1), "2 processes": lambda: survey(2)}
    times = alternate(ROUNDS, actions, time.perf_counter)  # two take more processor time, and end earlier
    if found[1][:3] != found[2][:3]:
        raise BenchError(f"survey: {found[1]} with one process, {found[2]} with two")
    faster = ratios(times["1 process"], times["2 processes"])
    what = f"{len(libraries)} libraries with their code"
    yield Row(
        part=PART,
        what=f"{what}: 1 process / 2 processes",
        values=faster,
        unit="x",
        target=FASTER,
        detail=medians("s", **times),
    )
    for name in ("instructions", "functions"):
        speeds = [getattr(found[2], name) / seconds for seconds in times["2 processes"]]
        yield Row(PART, f"{name} a second, 2 processes", speeds, "")
    with tempfile.TemporaryDirectory() as folder:
        costs = {count: [_cost(libraries[0], count, Path(folder)) for _ in range(ROUNDS)] for count in (FEW, MANY)}
    growth = ratios(costs[MANY], costs[FEW])
    yield Row(PART, f"processor time of one of {MANY:,} files / of {FEW}", growth, "x", GROWTH)
    yield Row(PART, "peak memory of a process", [max(one.peak for one in found.values()) / 1e6], "MB", MEMORY)


def _libraries() -> list[str]:
    files = (path for path in sorted(Path("/usr/lib").glob("*-linux-gnu/*.so.*")) if not path.is_symlink())
    return [str(path) for path in files if path.stat().st_size <= LARGEST][:LIBRARIES]


def _survey(paths: Sequence[str], plan: SurveyPlan, jobs: int) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder, "some.db")
        store = Store(str(database))
        Survey(store, store.begin(plan, paths, "")).survey(paths, local_workers(plan, jobs))
        store.close()
        connection = sqlite3.connect(database)
        sums = "count(*), sum(functions), sum(instructions), max(peak)"
        found = connection.execute(f"SELECT {sums} FROM files WHERE state = ?", (SURVEYED,)).fetchone()
        connection.close()
    return Result(*found)


def _cost(path: str, count: int, folder: Path) -> float:
    """Return the processor time in seconds for one of many files that differ in their last bytes only."""
    package = folder / f"{count}.tar"
    if not package.exists():
        contents = Path(path).read_bytes()
        with tarfile.open(package, "w") as archive:
            for number in range(count):
                data = contents + b"%d" % number
                info = tarfile.TarInfo(f"file{number}")
                info.size = len(data)
                archive.addfile(info, BytesIO(data))
    before = _processor_seconds()
    result = _survey([str(package)], PLAIN, 2)
    if result.files != count:
        raise BenchError(f"survey: {result.files} files, expected {count}")
    return (_processor_seconds() - before) / count


def _processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
