"""Functions that run inside GDB; see :meth:`bench.debuggers.Gdb.call`.  They need only GDB's own Python.

Times are CPU seconds of GDB, its system calls included, so that other work on the machine hardly counts.
"""

from __future__ import annotations

import gc
import json
import re
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import gdb
from gdb.unwinder import Unwinder, register_unwinder

from bench import in_gdb_driving

_MODES = {
    # name: the mode of the plugin, whether it is strict, and the unwinder
    "off": ("off", "off", "sframe"),
    "always": ("always", "off", "sframe"),
    "strict": ("always", "on", "sframe"),
    "least": ("off", "off", "least"),
}
_FRAME = re.compile(r"^#\d+ +(?:0x([0-9a-f]+) in )?(\S+)", re.MULTILINE)
"""Matches pc and function of a frame, which must be equal in all modes.  Arguments may differ."""
_RBP, _RSP, _RIP = "rbp", "rsp", "rip"
_TELLS_PC = hasattr(gdb.PendingFrame, "pc")
_LEARN = 50
"""Number of frames that the unwinder for comparison examines; all kinds of frames occur among them."""


def run(result: str, function: str, arguments: dict[str, Any]) -> None:
    """Call a function and write its result to a file."""
    for setting in ("pagination off", "confirm off", "width 0", "backtrace limit unlimited"):
        gdb.execute(f"set {setting}")
    value = _FUNCTIONS[function](**arguments)
    gdb.execute("kill", to_string=True)
    Path(result).write_text(json.dumps(value))


def snapshot(depth: int, stack: str) -> list[int]:
    """Write the bytes of the stack to a file; return pc, SP (where they begin) and FP."""
    _go_deep(depth)
    registers, memory = _stack()
    Path(stack).write_bytes(memory)
    return registers


def backtraces(depth: int, rounds: int, frames: int) -> dict[str, list[float]]:
    """Return the times of `bt` in each mode and of `sframe compare`, in seconds for each round after a warm-up one."""
    _go_deep(depth)
    register_unwinder(None, _Least())
    times: dict[str, list[float]] = {mode: [] for mode in _MODES}
    compared = []
    for number in range(-1, rounds):
        shown = set()
        for mode, text in _round(number, times, "bt"):
            outer = tuple(_FRAME.findall(text)[-frames:])
            shown.add(outer)
            if len(outer) != frames or len(shown) != 1:
                raise gdb.error(f"mode {mode}: {len(outer)} frames, or other ones than in another mode")
        compared.append(_compare(frames))
    return {**times, "compare": compared[1:]}


def outermost(depth: int, rounds: int, frames: int) -> dict[str, list[float]]:
    """Return the times of `bt -1` in two modes; it unwinds all frames and prints one."""
    _go_deep(depth)
    times: dict[str, list[float]] = {"off": [], "always": []}
    for number in range(-1, rounds):
        shown = set()
        for mode, text in _round(number, times, "bt -1"):
            level = int(text.removeprefix("#").split()[0])
            shown.add((level, *_FRAME.findall(text)))
            if level < frames or len(shown) != 1:
                raise gdb.error(f"mode {mode}: frame {level} is the outermost one, or another one than in another mode")
    return times


def backtraces_unaided(depth: int, rounds: int, frames: int) -> list[float]:
    """Return the times of `bt` in a GDB without the plugin, in seconds for each round after a warm-up one."""
    _go_deep(depth)
    times = []
    for _ in range(-1, rounds):
        seconds, text = _timed("bt")
        found = len(_FRAME.findall(text))
        if found < frames:
            raise gdb.error(f"{found} frames, expected {frames} at least")
        times.append(seconds)
    return times[1:]


def run_time_code(procedures: int, rounds: int) -> dict[str, list[float]]:
    """Return the times of the first `bt` of a process and of one at a later stop, in seconds, with few and with many
    registered procedures, after one warm-up round."""
    programs = {"few": "spills", "many": f"--many {procedures}"}
    times: dict[str, list[float]] = {f"{when} {what}": [] for when in ("first", "after") for what in programs}
    for number in range(-1, rounds):
        for what, arguments in programs.items():
            gdb.execute("set sframe mode off")  # nothing is read before the first backtrace
            gdb.execute("tbreak sample_stop", to_string=True)
            gdb.execute(f"run {arguments} > /dev/null", to_string=True)
            gdb.execute("set sframe mode always")
            for when in ("first", "after"):
                gc.collect()
                started = time.process_time()
                text = gdb.execute("bt", to_string=True)
                seconds = time.process_time() - started
                if "in spills ()" not in text or "in main" not in text:
                    raise gdb.error(f"{what} procedures: the backtrace is not complete: {text}")
                if number >= 0:
                    times[f"{when} {what}"].append(seconds)
                gdb.execute("stepi", to_string=True)
    return times


def stops(place: int, count: int, generate: bool) -> tuple[list[float], list[int]]:
    """Return the times of stops at an address with `bt` at each, in seconds, and the numbers of frames."""
    if generate:
        gdb.execute("set sframe generate code")
    gdb.execute("set backtrace past-main on")
    gdb.execute("starti > /dev/null", to_string=True)
    gdb.execute(f"break *{place:#x}", to_string=True)
    times, frames = [], []
    for _ in range(count):
        gc.collect()
        started = time.process_time()
        gdb.execute("continue", to_string=True)
        text = gdb.execute("bt", to_string=True)
        times.append(time.process_time() - started)
        frames.append(len(_FRAME.findall(text)))
    return times, frames


def _go_deep(depth: int) -> None:
    gdb.execute("tbreak sample_stop", to_string=True)
    gdb.execute(f"run {depth} > /dev/null", to_string=True)


def _round(number: int, times: dict[str, list[float]], command: str) -> Iterator[tuple[str, str]]:
    """Yield each mode and what a command prints in it; except in the warm-up round -1, append the time.

    Every other round goes through the modes backwards.
    """
    for mode in reversed(times) if number % 2 else times:
        seconds, text = _backtrace(mode, command)
        if number >= 0:
            times[mode].append(seconds)
        yield mode, text


def _backtrace(mode: str, command: str) -> tuple[float, str]:
    setting, strict, enabled = _MODES[mode]
    gdb.execute(f"set sframe mode {setting}")
    gdb.execute(f"set sframe strict {strict}")
    for unwinder in gdb.frame_unwinders:
        unwinder.enabled = unwinder.name == enabled
    return _timed(command)


def _compare(frames: int) -> float:
    """Return the time of `sframe compare` in mode ``off``, which changes nothing else."""
    gdb.execute("set sframe mode off")
    seconds, text = _timed("sframe compare")
    found = re.search(r"^(\d+) frames agree", text, re.MULTILINE)
    if found is None or int(found[1]) < frames:
        raise gdb.error(f"sframe compare: {text.strip().splitlines()[-1]}")
    return seconds


def _timed(command: str) -> tuple[float, str]:
    """Return the time of a command at a new stop, and what it prints."""
    # Invalidate all caches, as a stop does.
    gdb.execute("stepi", to_string=True)
    gdb.invalidate_cached_frames()
    gc.collect()
    started = time.process_time()
    text = gdb.execute(command, to_string=True)
    return time.process_time() - started, text


def _stack() -> tuple[list[int], bytes]:
    """Return pc, SP and FP of the innermost frame, and the stack from SP on."""
    frame = gdb.newest_frame()
    pc, sp, fp = (int(frame.read_register(name)) for name in (_RIP, _RSP, _RBP))
    inferior = gdb.selected_inferior()
    (end,) = re.findall(r"-([0-9a-f]+) .*\[stack\]", Path(f"/proc/{inferior.pid}/maps").read_text())
    return [pc, sp, fp], bytes(inferior.read_memory(sp, int(end, 16) - sp))


class _FrameId:
    __slots__ = ("pc", "sp")

    def __init__(self, sp: gdb.Value, pc: gdb.Value) -> None:
        self.sp = sp
        self.pc = pc


class _Least(Unwinder):  # type: ignore[misc]  # GDB's classes have no types
    """An unwinder for comparison: it finds frames by pc in a table made from the innermost ones, without checks.

    It has a copy of the stack, and is right only for the program in which it is made.
    """

    def __init__(self) -> None:
        super().__init__("least")
        (_, self._address, _), self._stack = _stack()
        registers = gdb.newest_frame().architecture().registers()
        self._pc, self._sp, self._fp = (registers.find(name) for name in (_RIP, _RSP, _RBP))
        self._unpack = struct.Struct("<Q").unpack_from
        self._known: dict[int, tuple[int, int | None]] = {}
        frame = gdb.newest_frame().older()
        while frame.level() < _LEARN:
            self._learn(frame, frame.older())
            frame = frame.older()

    def _learn(self, frame: gdb.Frame, outer: gdb.Frame) -> None:
        """Record the size of a frame, and the offset from the CFA at which it saves the frame pointer."""
        pc, sp, fp = (int(frame.read_register(register)) for register in (self._pc, self._sp, self._fp))
        cfa, caller_fp = (int(outer.read_register(register)) for register in (self._sp, self._fp))
        saved = [offset for offset in range(-16, sp - cfa - 8, -8) if self._word(cfa + offset) == caller_fp]
        self._known[pc] = cfa - sp, saved[0] if saved and fp != caller_fp else None

    def _word(self, address: int) -> int:
        word: int = self._unpack(self._stack, address - self._address)[0]
        return word

    def __call__(self, frame: gdb.PendingFrame) -> gdb.UnwindInfo | None:
        read, word = frame.read_register, self._word
        known = self._known.get(frame.pc() if _TELLS_PC else int(read(self._pc)))
        if known is None:
            return None
        size, fp_offset = known
        cfa = int(read(self._sp)) + size
        fp = int(read(self._fp)) if fp_offset is None else word(cfa + fp_offset)
        info = frame.create_unwind_info(_FrameId(gdb.Value(cfa), gdb.Value(size)))
        save = info.add_saved_register
        save(self._pc, gdb.Value(word(cfa - 8)))
        save(self._sp, gdb.Value(cfa))
        save(self._fp, gdb.Value(fp))
        return info


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "snapshot": snapshot,
    "backtraces": backtraces,
    "outermost": outermost,
    "backtraces_unaided": backtraces_unaided,
    "run_time_code": run_time_code,
    "stops": stops,
    **in_gdb_driving.FUNCTIONS,
}
