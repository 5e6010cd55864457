"""Functions that move a program inside GDB; see :meth:`bench.debuggers.Gdb.call`.  They need only GDB's own Python.

Each returns the CPU seconds of GDB, its system calls included, so that other work on the machine does not count.
"""

from __future__ import annotations

import time
from typing import Any, Callable

import gdb


def moving(
    work: str, count: int, program_arguments: str, mode: str | None = None, stop_at: str = "step", expected: str = ""
) -> float:
    """Return what a kind of work costs in a mode of the plugin, from a program that has stopped once.

    :param work: a key of ``_WORK``.
    :param count: how often it is done.
    :param mode: ``None``: the plugin is not loaded.
    :param stop_at: the function where the program stops before.
    :param expected: what GDB's last ``bt`` must show.
    """
    if mode is not None:
        gdb.execute(f"set sframe mode {mode}")
    gdb.execute(f"tbreak {stop_at}", to_string=True)
    gdb.execute(f"run {program_arguments} > /dev/null", to_string=True)
    gdb.execute("bt", to_string=True)  # symbols are read once, and not by the plugin
    started = time.process_time()
    _WORK[work](count)
    seconds = time.process_time() - started
    shown = gdb.execute("bt", to_string=True)
    if expected not in shown:
        raise gdb.error(f"{work}: {expected!r} is not in: {shown}")
    return seconds


def _repeated(command: str) -> Callable[[int], None]:
    def repeat(count: int) -> None:
        for _ in range(count):
            gdb.execute(command, to_string=True)

    return repeat


def _condition(condition: str) -> Callable[[int], None]:
    def hit(_count: int) -> None:
        gdb.execute(f"break hit if {condition}", to_string=True)
        gdb.execute("tbreak done", to_string=True)
        gdb.execute("continue", to_string=True)
        point = next(point for point in gdb.breakpoints() if point.location == "hit")
        if point.hit_count != 0:
            raise gdb.error(f"the condition {condition} was true {point.hit_count} times")

    return hit


def _loads(count: int) -> None:
    gdb.execute("break loaded", to_string=True)
    for _ in range(count):
        gdb.execute("continue", to_string=True)


def _threads(count: int) -> None:
    shown = gdb.execute("thread apply all -q bt", to_string=True)
    found = shown.count("in descend (")
    if found < count:
        raise gdb.error(f"{found} frames, expected {count}")


_WORK: dict[str, Callable[[int], None]] = {
    "stepi": _repeated("stepi"),
    "next": _repeated("next"),
    "condition": _condition("number < 0"),
    "condition on callers": _condition('$_any_caller_is("nobody", 4)'),
    "loads": _loads,
    "threads": _threads,
}

FUNCTIONS: dict[str, Callable[..., Any]] = {"moving": moving}
