"""The command line of the package."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from lab.fuzz.campaign import TARGETS, Failure, Result, prepare, run

_AT_ONCE = 1000
_FAILURES = Path(__file__).resolve().parents[2] / ".cache" / "fuzz"


def main() -> int:
    """Run the command; return its exit status: 1 after a failure."""
    parser = argparse.ArgumentParser(prog="python -m lab.fuzz", description="Try damaged sections.")
    parser.add_argument("--count", type=int, default=20_000, metavar="N", help="how many inputs (default: 20000)")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the first one's number (default: 0)")
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count(), metavar="N", help="how many processes")
    parser.add_argument("--number", type=int, metavar="N", help="try one input, without bounds")
    parser.add_argument("--what", choices=TARGETS, default="sframe", help="the kind of section (default: sframe)")
    parser.add_argument("--log", type=Path, metavar="FILE", help="note what is done, and go on from there next time")
    options = parser.parse_args()
    if options.number is not None:
        seen: Counter[str] = Counter()
        TARGETS[options.what].exercise(TARGETS[options.what].made(options.number), seen)
        print(dict(seen))
        return 0
    return _campaign(options.what, options.first, options.count, options.jobs, options.log)


def _campaign(what: str, first: int, count: int, jobs: int, log: Path | None) -> int:
    started = time.monotonic()
    seen: Counter[str] = Counter()
    failures: list[Failure] = []
    inputs = 0
    done = set()
    for entry in _logged(log):
        done.add(entry["first"])
        inputs += entry["inputs"]
        seen.update(entry["seen"])
        failures += [Failure(number, seed, what_failed, b"") for number, seed, what_failed in entry["failures"]]
    ranges = [numbers for numbers in _ranges(first, first + count) if numbers.start not in done]
    with multiprocessing.get_context("spawn").Pool(jobs, prepare, (what,)) as pool:
        for result in pool.imap_unordered(partial(run, kind=what), ranges):
            _note(log, result)
            inputs += result.inputs
            seen += result.seen
            failures += result.failures
            for failure in result.failures:
                failure.keep(_FAILURES)
            if sys.stderr.isatty():
                print(f"\r{inputs:,} inputs, {len(failures)} failures", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    for failure in failures:
        print(f"input {failure.number} ({failure.seed}): {failure.what}")
    print(f"inputs {first:,} to {first + count - 1:,}: {inputs:,} tried in {time.monotonic() - started:.0f} s")
    print("; ".join(f"{what}: {number:,}" for what, number in sorted(seen.items())))
    print(f"{len(failures)} failures")
    return 1 if failures else 0


def _logged(log: Path | None) -> list[dict[str, Any]]:
    if log is None or not log.exists():
        return []
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def _note(log: Path | None, result: Result) -> None:
    if log is not None:
        failures = [failure[:3] for failure in result.failures]
        line = {"first": result.first, "inputs": result.inputs, "seen": result.seen, "failures": failures}
        with log.open("a", encoding="utf-8") as stream:
            stream.write(f"{json.dumps(line)}\n")


def _ranges(first: int, end: int) -> Iterator[range]:
    return (range(start, min(start + _AT_ONCE, end)) for start in range(first, end, _AT_ONCE))


if __name__ == "__main__":
    raise SystemExit(main())
