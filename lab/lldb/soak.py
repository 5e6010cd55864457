"""Repeats typical debugger sessions many times: no hang, no crash, and correct output every time.

python -m lab.lldb.soak [--rounds N] [--first N] [--lldb NAME]... [--way WAY]...
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Callable

from lab.lldb.driving import ALWAYS, STRICT, drive
from tests.hanging import HANG
from tests.lldb.debuggers import PROVIDING, path_of
from tests.lldb.driver import IMPORT, batch
from tests.lldb.terminal import Terminal, terminal, typed, typed_import
from tests.samples.build import build

_SAMPLES = ("leaf", "recursion", "threads", "sframe_only_stripped", "callback")
"""Samples with plain frames, deeper ones, threads, frames that only SFrame has, and the C library's in between."""
_OUTER = {"leaf": "outer", "recursion": "descend", "threads": "main", "callback": "sort"}
"""A function that is always on the stack."""
_SECONDS = HANG
_STEPS = 25
"""Number of commands of a driven round."""
_LEVELS = ("-O2", "-O0", "-O1", "-O3")


def _check(sample: str, shown: Sequence[str]) -> None:
    """Check each of the backtraces: at the breakpoint, after a step, after finishing the function."""
    for backtrace in shown:
        frames = [line for line in backtrace.splitlines() if "frame #" in line]
        numbers = [int(line.partition("frame #")[2].partition(":")[0]) for line in frames]
        assert numbers == list(range(len(frames))), backtrace
        assert len(frames) >= 4, backtrace
        assert "libc_start" in backtrace, backtrace
        assert sample not in _OUTER or (f"`{_OUTER[sample]}" in backtrace and "`main" in backtrace), backtrace


def in_batch_loaded_first(lldb: str, number: int) -> None:
    """Load the plugin before there is a target."""
    _in_batch(lldb, _sample(number), ("-O", IMPORT), ())


def in_batch_loaded_at_a_stop(lldb: str, number: int) -> None:
    """Load the plugin while the process is stopped; `bt` is the next command."""
    _in_batch(lldb, _sample(number), (), ("-o", IMPORT))


def _in_batch(lldb: str, sample: str, before: tuple[str, ...], at_the_stop: tuple[str, ...]) -> None:
    rounds = [part for command in ("bt", "step", "bt", "finish", "bt") for part in ("-o", command)]
    start = ("-o", "breakpoint set -n sample_stop", "-o", "process launch -o /dev/null")
    modes = [part for mode in ("off", "always") for part in ("-o", f"sframe mode {mode}", "-o", "bt")]
    said = batch(lldb, *before, *start, *at_the_stop, *rounds, *modes, str(build(sample)), seconds=_SECONDS)
    shown = [part.partition("(lldb) ")[0] for part in said.split("(lldb) bt\n")[1:]]
    assert len(shown) == 5, said
    own = shown.pop(3)
    _check(sample, shown)
    assert "frame #0" in own


def typed_loaded_first(lldb: str, number: int) -> None:
    """At a terminal; the plugin is loaded before there is a target."""
    with terminal(lldb) as session:
        session.run(typed_import())
        _start(session, _sample(number))
        _use(session, _sample(number))


def typed_loaded_at_a_stop(lldb: str, number: int) -> None:
    """At a terminal; `bt` is typed together with the import, at a stopped process."""
    with terminal(lldb) as session:
        _start(session, _sample(number))
        session.type(typed_import())
        _use(session, _sample(number))


def driven(lldb: str, number: int) -> None:
    """At a terminal, a C++ program with threads is moved by random commands; the number is their seed.

    In every third round, each frame is SFrame's own.
    """
    strict = number % 3 == 2
    done = drive(lldb, number, STRICT if strict else ALWAYS, _STEPS, _LEVELS[number % len(_LEVELS)])
    assert len(done) == _STEPS
    for step in done:
        assert step.frames, step
        assert strict or not step.synthetic, step


def _sample(number: int) -> str:
    return _SAMPLES[number % len(_SAMPLES)]


def _start(session: Terminal, sample: str) -> None:
    session.run(f'target create "{typed(build(sample))}"')
    session.run("breakpoint set -n sample_stop")
    session.launch()


def _use(session: Terminal, sample: str) -> None:
    shown = [session.run("bt")]
    for command in ("step", "finish"):
        session.resume(command)
        shown.append(session.run("bt"))
    for mode in ("off", "always"):
        session.type(f"sframe mode {mode}")
        shown.append(session.run("bt"))
    own = shown.pop(3)
    _check(sample, [backtrace.rpartition("(lldb) bt")[2] for backtrace in shown])
    assert "frame #0" in own


WAYS: dict[str, Callable[[str, int], None]] = {
    "batch-first": in_batch_loaded_first,
    "batch-stopped": in_batch_loaded_at_a_stop,
    "typed-first": typed_loaded_first,
    "typed-stopped": typed_loaded_at_a_stop,
    "driven": driven,
}


def soak(lldb: str, way: str, rounds: range) -> None:
    """Run the rounds of these numbers, over all samples in turn."""
    for number in rounds:
        try:
            WAYS[way](lldb, number)
        except Exception:
            print(f"{lldb}, {way}: round {number} failed", file=sys.stderr)
            raise


def main() -> int:
    """Run rounds, print their number, and stop at the first failure."""
    parser = argparse.ArgumentParser(prog="python -m lab.lldb.soak", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=300, help="for each LLDB and way (default: 300)")
    parser.add_argument("--first", type=int, default=0, help="the first round's number (default: 0)")
    parser.add_argument("--lldb", action="append", choices=PROVIDING, help="default: all")
    parser.add_argument("--way", action="append", choices=list(WAYS), help="default: all")
    options = parser.parse_args()
    for name in options.lldb or PROVIDING:
        for way in options.way or WAYS:
            started = time.monotonic()
            soak(str(path_of(name)), way, range(options.first, options.first + options.rounds))
            print(f"LLDB {name}, {way}: {options.rounds} rounds, {time.monotonic() - started:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
