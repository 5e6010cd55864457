"""Runs many inputs, each within limits of time and memory.  The number of an input reproduces it."""

from __future__ import annotations

import resource
import signal
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import FrameType, ModuleType
from typing import NamedTuple

from lab.fuzz import cfi, files, perf, readers, source, target
from tests.hanging import hang_after

SECONDS = 1.0
"""Limit of processor time for one input in seconds, unless its kind has another; more on a slow or busy machine."""
MEMORY = 200 << 20
"""Limit in bytes for the growth of a process's memory by all its inputs, unless the kind has another."""


class Failure(NamedTuple):
    """An input that failed."""

    number: int
    seed: str
    what: str
    data: bytes

    def keep(self, folder: Path) -> Path:
        """Write the input to a file, and return its path."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"input-{self.number}"
        path.write_bytes(self.data)
        return path


class Result(NamedTuple):
    """The results of some inputs."""

    first: int
    """Number of the first input."""
    inputs: int
    seen: Counter[str]
    failures: tuple[Failure, ...]


class _TooSlow(BaseException):
    """Not an Exception, so that only the campaign catches it."""


TARGETS: dict[str, ModuleType] = {
    "sframe": target,
    "cfi": cfi,
    "files": files,
    "perf": perf,
    "readers": readers,
    "source": source,
}
"""The kinds of inputs, each with ``made(number)``, which makes an input, and ``exercise(input, seen)``."""


def _limit(kind: str, name: str) -> float:
    limit: float = getattr(TARGETS[kind], name, globals()[name])
    return limit


def prepare(kind: str = "sframe") -> None:
    """Limit this process permanently: an input that takes too much memory or time becomes an exception."""
    TARGETS[kind].made(0)  # before memory is measured
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + int(_limit(kind, "MEMORY"))
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))
    # Processor time, because on a busy machine the clock would blame the input.
    signal.signal(signal.SIGPROF, _too_slow)


def run(numbers: Sequence[int], kind: str = "sframe") -> Result:
    """Try the inputs of some numbers, in a prepared process."""
    seen: Counter[str] = Counter()
    failures, inputs = [], 0
    for number in numbers:
        section = TARGETS[kind].made(number)
        inputs += 1
        signal.setitimer(signal.ITIMER_PROF, hang_after(_limit(kind, "SECONDS") / 60))
        try:
            TARGETS[kind].exercise(section, seen)
        except (Exception, _TooSlow) as error:  # noqa: BLE001  # that is what is looked for
            what = f"{type(error).__name__}: {error}"
            failures.append(Failure(number, section.name, what, section.data))
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    return Result(numbers[0], inputs, seen, tuple(failures))


def _too_slow(_number: int, _frame: FrameType | None) -> None:
    raise _TooSlow("over the limit of processor time")
