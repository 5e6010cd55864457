"""Runs in GDB with a kernel: stops it many times and writes each stack to a file, as a line of JSON.

The environment has the plan: ``STOPS`` is the path of a file in JSON with ``random`` (how many stops at random times),
``functions`` (how many stops in each), ``seed`` and ``result`` (path of the file to which the lines are appended).
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import gdb

from tests.hanging import HANG

SHORTEST, LONGEST = 0.005, 0.05
"""Seconds that the kernel runs until a stop at a random time."""
PARTLY = "of which not all registers are saved yet"
VECTORS = "vectors"
"""Start of the code of exceptions.  On the way out, the register ELR_EL1 can be that of another exception."""
INSTRUCTIONS = 400
"""Maximum number of instructions until an exception is saved; it has some 40."""
PROBLEM_STATE = 1 << 48
"""The bit of the PSW's mask on s390x that is set in user space."""
PATIENCE = HANG
"""Seconds after which a function counts as not reached."""


def interrupted_after(seconds: float) -> threading.Timer:
    """Press Ctrl-C after a while."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer


def frames() -> list[str]:
    """Return the names of GDB's frames, without inlined functions; ``?``: GDB knows no name."""
    found = []
    frame: gdb.Frame | None = gdb.newest_frame()
    while frame is not None:
        if frame.type() != gdb.INLINE_FRAME:
            found.append(frame.name() or "?")
        reason, frame = frame.unwind_stop_reason(), frame.older()
    return [*found, gdb.frame_stop_reason_string(reason)]


def with_variables() -> list[str]:
    """Return the text of each frame of ``bt -full``, without its number."""
    # If a frame has a name of the plugin, GDB's code in Python prints all of them, in another format.
    text = gdb.execute("bt -full -no-filters", to_string=True)
    return re.split(r"^#\d+ +", text, flags=re.MULTILINE)[1:]


def in_kernel(pc: int) -> bool:
    """Return whether the processor executes code of the kernel."""
    if gdb.selected_inferior().architecture().name().startswith("s390"):
        return not int(gdb.parse_and_eval("$pswm")) & PROBLEM_STATE
    return bool(pc >> 63)


def stop(where: str) -> dict[str, object]:
    """Return a description of the stop."""
    pc = int(gdb.newest_frame().pc())
    text = gdb.execute("sframe bt", to_string=True)
    found = {"where": where, "in_kernel": in_kernel(pc), "sframe": text}
    found["bt"], found["with_plugin"] = frames(), with_variables()
    gdb.execute("set sframe mode off")
    found["alone"] = with_variables()
    gdb.execute("set sframe mode always")
    if PARTLY in text and gdb.newest_frame().name() == VECTORS:
        found["elr"], found["saved"] = int(gdb.parse_and_eval("(unsigned long)$ELR_EL1")), saved_pc()
    return found


def saved_pc() -> int | None:
    """Execute instructions until the exception is saved; return the pc in it."""
    for _ in range(INSTRUCTIONS):
        gdb.execute("stepi", to_string=True)
        exception, interrupted = gdb.execute("sframe bt 2", to_string=True).splitlines()[:2]
        if "<exception " in exception:
            return int(interrupted.split()[1], 16)
    return None


def at_random(number: int, dice: random.Random) -> Iterator[dict[str, object]]:
    """Stop at random times until the kernel's code was interrupted often enough."""
    found = 0
    while found < number:
        try:
            timer = interrupted_after(dice.uniform(SHORTEST, LONGEST))
            gdb.execute("continue", to_string=True)
            timer.join()
            stops = []
            for thread in gdb.selected_inferior().threads():
                thread.switch()
                stops.append(stop(""))
        except KeyboardInterrupt:  # it came before the kernel ran, or when it had stopped already
            continue
        found += sum(bool(one["in_kernel"]) for one in stops)
        yield from stops


def at_function(function: str, number: int) -> Iterator[dict[str, object]]:
    """Stop in a function."""
    for _ in range(number):
        breakpoint_ = gdb.Breakpoint(function, gdb.BP_HARDWARE_BREAKPOINT)
        timer = interrupted_after(PATIENCE)
        gdb.execute("continue", to_string=True)
        reached = breakpoint_.hit_count > 0
        timer.cancel()
        breakpoint_.delete()
        if not reached:
            return
        yield stop(function)


def main() -> None:
    """Execute the plan."""
    for limit in ("frame-arguments all", "max-depth 2", "elements 32", "symbol off"):
        gdb.execute(f"set print {limit}")
    plan = json.loads(Path(os.environ["STOPS"]).read_text(encoding="utf-8"))
    dice = random.Random(plan["seed"])
    with Path(plan["result"]).open("a", encoding="utf-8") as result:
        for function, number in plan["functions"].items():
            for found in at_function(function, number):
                print(json.dumps(found), file=result, flush=True)
        for found in at_random(plan["random"], dice):
            print(json.dumps(found), file=result, flush=True)


main()
