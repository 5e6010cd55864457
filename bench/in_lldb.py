"""Functions that run inside LLDB; see :meth:`bench.lldbs.Lldb.call`.  They need only LLDB's own Python.

Times of `bt` are CPU seconds of LLDB, so that other work on the machine hardly counts.
"""

from __future__ import annotations

import gc
import json
import os
import re
import time
from pathlib import Path
from typing import Any, Callable, ClassVar

import lldb
from lldb.plugins.scripted_frame_provider import ScriptedFrameProvider
from lldb.plugins.scripted_process import ScriptedFrame

_LEAST = "least"
_SHOWN = 20
"""Number of frames that the display of a deep stack has."""
_WARM_UP = 50
"""Stops before memory is measured."""
_SETTINGS = {
    "off": ("sframe mode off",),
    "always": ("sframe strict off", "sframe mode always"),
    "strict": ("sframe strict on", "sframe mode always"),
    _LEAST: ("sframe mode off",),
}
_FRAME = re.compile(r"frame #\d+: (0x[0-9a-f]+) [^\s`]+`(\w+)")
"""Matches pc and function of a frame, which must be equal in all modes."""


def backtraces(
    debugger: lldb.SBDebugger, depth: int, rounds: int, frames: int, modes: list[str]
) -> dict[str, list[float]]:
    """Return the times of `bt` in some modes, in seconds for each round, after one warm-up round."""
    _go_deep(debugger, depth)
    if _LEAST in modes:
        _register_least(debugger)
    times: dict[str, list[float]] = {mode: [] for mode in modes}
    for number in range(-1, rounds):
        shown = set()
        for mode in reversed(modes) if number % 2 else modes:
            seconds, text = _backtrace(debugger, mode)
            outer = tuple(_FRAME.findall(text)[-frames:])
            shown.add(outer)
            if len(outer) != frames or len(shown) != 1:
                raise RuntimeError(f"mode {mode}: {len(outer)} frames, or other ones than in another mode")
            if number >= 0:
                times[mode].append(seconds)
    _run(debugger, "process kill")
    return times


def backtraces_unaided(debugger: lldb.SBDebugger, depth: int, rounds: int, frames: int) -> list[float]:
    """Return the times of `bt` in an LLDB without the plugin, in CPU seconds for each round after a warm-up one."""
    _go_deep(debugger, depth)
    times = []
    for _ in range(-1, rounds):
        gc.collect()
        started = time.process_time()
        _run(debugger, "thread step-inst")
        text = _run(debugger, "bt")
        times.append(time.process_time() - started)
        if len(_FRAME.findall(text)) < frames:
            raise RuntimeError(f"not {frames} frames")
    _run(debugger, "process kill")
    return times[1:]


def growth(debugger: lldb.SBDebugger, stops: int, mode: str, program_arguments: str) -> float:
    """Return by how many MB LLDB grows over stops in the same place at which all frames are asked for."""
    debugger.SetAsync(False)
    _run(debugger, "breakpoint set -n step")
    _run(debugger, f"process launch -o /dev/null -- {program_arguments}")
    if mode == _LEAST:
        _register_least(debugger)
        Least.applies = True
    for command in _SETTINGS[mode]:
        _run(debugger, command)
    process = debugger.GetSelectedTarget().GetProcess()
    before = 0
    for number in range(-_WARM_UP, stops):
        if number == 0:
            before = _resident()
        process.Continue()
        if not all(frame.GetPC() for frame in process.GetSelectedThread()):
            raise RuntimeError("a frame has no pc")
    grown = (_resident() - before) / 1e6
    process.Kill()
    return grown


def _resident() -> int:
    """Return how many bytes of this process are in memory, without garbage of Python's."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGESIZE")


def _go_deep(debugger: lldb.SBDebugger, depth: int) -> None:
    debugger.SetAsync(False)
    _run(debugger, "breakpoint set -n sample_stop")
    _run(debugger, f"process launch -o /dev/null -- {depth}")


def _backtrace(debugger: lldb.SBDebugger, mode: str) -> tuple[float, str]:
    """Stop again and show the stack.  The time includes the stop, at which mode `always` unwinds."""
    for command in _SETTINGS[mode]:
        _run(debugger, command)
    Least.applies = mode == _LEAST
    gc.collect()
    started = time.process_time()
    _run(debugger, "thread step-inst")
    if mode == _LEAST:
        debugger.GetSelectedTarget().GetProcess().GetSelectedThread().GetNumFrames()  # as the plugin does
    text = _run(debugger, "bt")
    return time.process_time() - started, text


class _LeastFrame(ScriptedFrame):  # type: ignore[misc]  # LLDB's classes have no types
    """A frame of which only the pc is known."""

    def __init__(self, index: int, pc: int) -> None:
        self.id, self._pc = index, pc
        self.register_info: dict[str, list[str]] = {"sets": [], "registers": []}

    def get_id(self) -> int:
        return self.id

    def get_pc(self) -> int:
        return self._pc

    def get_register_context(self) -> None:
        return None


class Least(ScriptedFrameProvider):  # type: ignore[misc]
    """A provider for comparison: it has all frames but the innermost at hand, made from LLDB's own.

    The difference from mode `off` is what LLDB takes for frames of a script, whatever the script does.
    """

    applies = False
    frames: ClassVar[list[int | _LeastFrame]] = []

    def __init__(self, input_frames: lldb.SBFrameList, args: lldb.SBStructuredData) -> None:
        pass

    @classmethod
    def applies_to_thread(cls, _thread: lldb.SBThread) -> bool:
        return cls.applies

    @staticmethod
    def get_description() -> str:
        return "The least"

    def get_frame_at_index(self, index: int) -> int | _LeastFrame | None:
        return self.frames[index] if index < len(self.frames) else None


def _register_least(debugger: lldb.SBDebugger) -> None:
    thread = debugger.GetSelectedTarget().GetProcess().GetSelectedThread()
    pcs = [frame.GetPC() for frame in thread]
    Least.frames = [0, *(_LeastFrame(index, pc) for index, pc in enumerate(pcs) if index)]
    _run(debugger, f"target frame-provider register -C {__name__}.{Least.__name__}")


def _register_recursion(debugger: lldb.SBDebugger, count: int) -> None:
    """Let the least script give the frames of a function that has just been called at the end of a recursion."""
    process = debugger.GetSelectedTarget().GetProcess()
    error = lldb.SBError()
    caller = process.ReadPointerFromMemory(process.GetSelectedThread().GetFrameAtIndex(0).GetSP(), error)
    if not error.Success():
        raise RuntimeError(f"no return address: {error.GetCString()}")
    Least.frames = [0, *(_LeastFrame(index, caller) for index in range(1, count))]
    Least.applies = True
    _run(debugger, f"target frame-provider register -C {__name__}.{Least.__name__}")


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


def moving(debugger: lldb.SBDebugger, work: str, count: int, program_arguments: str) -> float:
    """Return the CPU seconds of LLDB that a program takes to be moved, in a session of its own."""
    debugger.SetAsync(False)
    stop_at = {"loads": "loaded", "script": "step", "stepi": "step"}.get(work)
    _run(debugger, f"breakpoint set -n {stop_at}" if stop_at else f"breakpoint set -n hit {_CONDITIONS[work]}")
    gc.collect()
    started = time.process_time()
    _run(debugger, f"process launch -o /dev/null -- {program_arguments}")
    for _ in range(count if stop_at else 0):
        if work == "stepi":
            _run(debugger, "thread step-inst")
            continue
        thread = debugger.GetSelectedTarget().GetProcess().GetSelectedThread()
        if work == "script" and not all(frame.GetPC() for frame in thread):
            raise RuntimeError("a frame has no pc")
        thread.GetProcess().Continue()
    seconds = time.process_time() - started
    process = debugger.GetSelectedTarget().GetProcess()
    if (process.GetState() == lldb.eStateStopped) != (work in ("script", "stepi")):
        raise RuntimeError(f"{work}: the program is not where it was to be")
    process.Kill()
    return seconds


def deep(debugger: lldb.SBDebugger, arguments: str, place: int = 0, least: int = 0, takes_all: bool = False) -> float:
    """Return the CPU seconds of LLDB for a run to the end of a recursion, a step there, and its innermost frames.

    :param arguments: those of the program, which overflows its stack without any.
    :param place: address in the program's file of the function at the end of the recursion; 0: it has a symbol.
    :param least: number of frames that the least script gives at that place; 0: there is no such script.
    :param takes_all: whether the script lets LLDB take all of them at each stop, as the plugin must in LLDB 22.
    """
    debugger.SetAsync(False)
    if arguments:
        program = debugger.GetSelectedTarget().GetExecutable().GetFilename()
        _run(debugger, f"breakpoint set -s {program} -a {place:#x}" if place else "breakpoint set -n reached")
    gc.collect()
    started = time.process_time()
    _run(debugger, f"process launch -o /dev/null -- {arguments}")
    if least:
        _register_recursion(debugger, least)
        if takes_all:
            _take_all(debugger)
    if arguments:
        _run(debugger, "thread step-over")
        if least and takes_all:
            _take_all(debugger)
    shown = _run(debugger, f"thread backtrace -c {_SHOWN}")
    seconds = time.process_time() - started
    process = debugger.GetSelectedTarget().GetProcess()
    if process.GetState() != lldb.eStateStopped or (least and shown.count("[synthetic]") != _SHOWN - 1):
        raise RuntimeError("the program is not where it was to be, or its frames are not those of the script")
    process.Kill()
    return seconds


def _take_all(debugger: lldb.SBDebugger) -> None:
    debugger.GetSelectedTarget().GetProcess().GetSelectedThread().GetNumFrames()


def stops(debugger: lldb.SBDebugger, place: int, count: int, generate: bool) -> tuple[list[float], list[int]]:
    """Return the CPU seconds of LLDB for stops at an address with `bt` at each, and the numbers of frames."""
    debugger.SetAsync(False)
    if generate:
        _run(debugger, "sframe generate code")
    _run(debugger, "process launch --stop-at-entry -o /dev/null")
    target = debugger.GetSelectedTarget()
    target.BreakpointCreateByAddress(place)
    times, frames = [], []
    for _ in range(count):
        gc.collect()
        started = time.process_time()
        _run(debugger, "process continue")
        text = _run(debugger, "bt")
        times.append(time.process_time() - started)
        frames.append(text.count("frame #"))
    target.GetProcess().Kill()
    return times, frames


_CONDITIONS = {"condition": "-c 'number == -1'", "ignore": "-i 1000000"}
"""Options of a breakpoint that never stops the program for the user."""


def _run(debugger: lldb.SBDebugger, command: str) -> str:
    # LLDB does not update the selected target while it imports a script.
    target = debugger.GetSelectedTarget()
    thread = target.GetProcess().GetSelectedThread()
    context, result = lldb.SBExecutionContext(thread if thread.IsValid() else target), lldb.SBCommandReturnObject()
    debugger.GetCommandInterpreter().HandleCommand(command, context, result)
    if not result.Succeeded():
        raise RuntimeError(f"{command}: {result.GetError().strip()}")
    return str(result.GetOutput())


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "backtraces": backtraces,
    "backtraces_unaided": backtraces_unaided,
    "deep": deep,
    "driving": driving,
    "growth": growth,
    "moving": moving,
    "stops": stops,
}


def __lldb_init_module(debugger: lldb.SBDebugger, _internal_dict: dict[str, Any]) -> None:
    job = json.loads(os.environ["BENCH_JOB"])
    Path(job["result"]).write_text(json.dumps(_FUNCTIONS[job["function"]](debugger, **job["arguments"])))
