"""Runs in GDB at a kernel: stops it many times and writes each stack to a file, as a line of JSON.

The environment has the plan: ``STOPS`` is the path of a file in JSON with ``random`` (how many stops at random times),
``functions``, ``each`` (how many stops in each function), ``seed`` and ``result`` (path of the file to write).
"""

from __future__ import annotations

import json
import os
import random
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import gdb

SHORTEST, LONGEST = 0.005, 0.05
"""Seconds that the kernel runs until a stop at a random time."""
PARTLY = "of which not all registers are saved yet"
VECTORS = "vectors"
"""Where an exception begins.  On the way out, the register ELR_EL1 can be that of another exception."""
INSTRUCTIONS = 400
"""How many an exception takes at most to be saved; it has some 40."""
PATIENCE = 20
"""Seconds after which a function counts as not reached."""


def interrupted_after(seconds: float) -> threading.Timer:
    """Press Ctrl-C after a while."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer


def frames() -> list[str]:
    """Return the names of GDB's frames, without inlined functions; ``?`` where it knows none."""
    found = []
    frame: gdb.Frame | None = gdb.newest_frame()
    while frame is not None:
        if frame.type() != gdb.INLINE_FRAME:
            found.append(frame.name() or "?")
        reason, frame = frame.unwind_stop_reason(), frame.older()
    return [*found, gdb.frame_stop_reason_string(reason)]


def stop(where: str) -> dict[str, object]:
    """Describe the stop."""
    pc = int(gdb.newest_frame().pc())
    text = gdb.execute("sframe bt", to_string=True)
    found = {"where": where, "pc": pc, "processor": gdb.selected_thread().num, "sframe": text, "gdb": frames()}
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
    in_kernel = 0
    while in_kernel < number:
        timer = interrupted_after(dice.uniform(SHORTEST, LONGEST))
        try:
            gdb.execute("continue", to_string=True)
            timer.join()
            stops = []
            for thread in gdb.selected_inferior().threads():
                thread.switch()
                stops.append(stop(""))
        except KeyboardInterrupt:  # it came before the kernel ran, or when it had stopped already
            continue
        in_kernel += sum(int(str(found["pc"])) >> 63 for found in stops)
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
    """Carry the plan out."""
    plan = json.loads(Path(os.environ["STOPS"]).read_text(encoding="utf-8"))
    dice = random.Random(plan["seed"])
    with Path(plan["result"]).open("w", encoding="utf-8") as result:
        for function in plan["functions"]:
            for found in at_function(function, plan["each"]):
                print(json.dumps(found), file=result, flush=True)
        for found in at_random(plan["random"], dice):
            print(json.dumps(found), file=result, flush=True)


main()
