"""Functions that run inside LLDB; see :meth:`bench.lldbs.Lldb.call`.  They need only LLDB's own Python."""

from __future__ import annotations

import gc
import json
import os
import re
import time
from pathlib import Path
from typing import Any, Callable

import lldb

_SETTINGS = {
    "off": ("sframe mode off",),
    "always": ("sframe strict off", "sframe mode always"),
    "strict": ("sframe strict on", "sframe mode always"),
}
_FRAME = re.compile(r"frame #\d+: (0x[0-9a-f]+) \S+`(\w+)")
"""Matches pc and function of a frame, which must be equal in all modes."""


def backtraces(debugger: lldb.SBDebugger, depth: int, rounds: int, frames: int) -> dict[str, list[float]]:
    """Return the times of `bt` in each mode, in seconds for each round, after one warm-up round."""
    debugger.SetAsync(False)
    _run(debugger, "breakpoint set -n sample_stop")
    _run(debugger, f"process launch -o /dev/null -- {depth}")
    times: dict[str, list[float]] = {mode: [] for mode in _SETTINGS}
    for number in range(-1, rounds):
        shown = set()
        for mode in reversed(_SETTINGS) if number % 2 else _SETTINGS:
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
    """Stop again and show the stack.  The time includes the stop, at which mode `always` unwinds."""
    for command in _SETTINGS[mode]:
        _run(debugger, command)
    gc.collect()
    started = time.perf_counter()
    _run(debugger, "thread step-inst")
    text = _run(debugger, "bt")
    return time.perf_counter() - started, text


def driving(debugger: lldb.SBDebugger, mode: str, commands: list[str]) -> float:
    """Return how many seconds commands take that move a program from its beginning, with nothing known before."""
    debugger.SetAsync(False)
    for command in _SETTINGS[mode]:
        _run(debugger, command)
    _run(debugger, "breakpoint set -n main")
    _run(debugger, "process launch -o /dev/null")
    gc.collect()
    started = time.perf_counter()
    for command in commands:
        _run(debugger, command)
    seconds = time.perf_counter() - started
    _run(debugger, "process kill")
    return seconds


def _run(debugger: lldb.SBDebugger, command: str) -> str:
    # LLDB does not update the selected target while it imports a script.
    target = debugger.GetSelectedTarget()
    thread = target.GetProcess().GetSelectedThread()
    context, result = lldb.SBExecutionContext(thread if thread.IsValid() else target), lldb.SBCommandReturnObject()
    debugger.GetCommandInterpreter().HandleCommand(command, context, result)
    if not result.Succeeded():
        raise RuntimeError(f"{command}: {result.GetError().strip()}")
    return str(result.GetOutput())


_FUNCTIONS: dict[str, Callable[..., Any]] = {"backtraces": backtraces, "driving": driving}


def __lldb_init_module(debugger: lldb.SBDebugger, _internal_dict: dict[str, Any]) -> None:
    job = json.loads(os.environ["BENCH_JOB"])
    Path(job["result"]).write_text(json.dumps(_FUNCTIONS[job["function"]](debugger, **job["arguments"])))
