"""What runs inside LLDB; see :meth:`bench.lldbs.Lldb.call`.  It needs nothing but LLDB's own Python."""

from __future__ import annotations

import gc
import json
import os
import re
import time
from pathlib import Path
from typing import Any

import lldb

_MODES = ("off", "always")
_FRAME = re.compile(r"frame #\d+: (0x[0-9a-f]+) \S+`(\w+)")
"""The pc and the function of a frame, which must be the same in all modes."""


def backtraces(debugger: lldb.SBDebugger, depth: int, rounds: int, frames: int) -> dict[str, list[float]]:
    """Return how many seconds `bt` takes in each mode, round by round, after one that does not count."""
    debugger.SetAsync(False)
    _run(debugger, "breakpoint set -n sample_stop")
    _run(debugger, f"process launch -o /dev/null -- {depth}")
    times: dict[str, list[float]] = {mode: [] for mode in _MODES}
    for number in range(-1, rounds):
        shown = set()
        for mode in reversed(_MODES) if number % 2 else _MODES:
            seconds, text = _backtrace(debugger, mode)
            outer = tuple(_FRAME.findall(text)[-frames:])
            shown.add(outer)
            if len(outer) != frames or len(shown) != 1:
                raise RuntimeError(f"mode {mode}: {len(outer)} frames, or other ones than in another mode")
            if number >= 0:
                times[mode].append(seconds)
    _run(debugger, "process kill")
    return times


def _backtrace(debugger: lldb.SBDebugger, mode: str) -> tuple[float, str]:
    """Stop anew and show the stack; the stop counts too, as in mode `always` that is when frames are unwound."""
    _run(debugger, f"sframe mode {mode}")
    gc.collect()
    started = time.perf_counter()
    _run(debugger, "thread step-inst")
    text = _run(debugger, "bt")
    return time.perf_counter() - started, text


def _run(debugger: lldb.SBDebugger, command: str) -> str:
    # While a script is imported, LLDB does not ask what is selected.
    target = debugger.GetSelectedTarget()
    thread = target.GetProcess().GetSelectedThread()
    context, result = lldb.SBExecutionContext(thread if thread.IsValid() else target), lldb.SBCommandReturnObject()
    debugger.GetCommandInterpreter().HandleCommand(command, context, result)
    if not result.Succeeded():
        raise RuntimeError(f"{command}: {result.GetError().strip()}")
    return str(result.GetOutput())


def __lldb_init_module(debugger: lldb.SBDebugger, _internal_dict: dict[str, Any]) -> None:
    job = json.loads(os.environ["BENCH_JOB"])
    Path(job["result"]).write_text(json.dumps(backtraces(debugger, **job["arguments"])))
