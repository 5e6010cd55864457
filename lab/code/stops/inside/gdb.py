"""Stops a program in GDB at given instructions, and collects the stacks and where steps end."""

from __future__ import annotations

from typing import Any

import gdb

from tests.gdb.inside.frames import chain
from tests.gdb.inside.program import execute, stopped

_MOST_HITS = 3
"""Maximum number of stops at one instruction: a loop must not be all that is seen."""
_MOST_FRAMES = 200


def collect(
    program: dict[str, Any], places: list[int], count: int, settings: list[str], moves: list[str]
) -> list[dict[str, Any]]:
    """Return the stack at each stop, by pc and SP, and pc and SP after the commands that move on.

    SP counts from that of the innermost frame: an emulator may put the stack elsewhere in each run.

    :param places: the addresses of the breakpoints.
    :param count: maximum number of stops.
    :param moves: commands, of which each stop runs the next one.
    """
    for setting in ("set pagination off", "set backtrace past-main on", *settings):
        execute(setting)
    found: list[dict[str, Any]] = []
    with stopped(program):
        execute("starti" if not program["emulator"] else "info registers pc")
        for address in places:
            execute(f"break *{address:#x}")
        hits: dict[int, int] = {}
        while len(found) < count and _goes_on("continue"):
            pc = gdb.newest_frame().pc()
            hits[pc] = hits.get(pc, 0) + 1
            if hits[pc] == _MOST_HITS:
                execute(f"clear *{pc:#x}")
            base = _sp(gdb.newest_frame())
            stop: dict[str, Any] = {"frames": _frames(base), "move": moves[len(found) % len(moves)]}
            if stop["move"]:
                stop["after"] = _frames(base)[:1] if _goes_on(stop["move"]) else []
            found.append(stop)
    return found


def _goes_on(command: str) -> bool:
    """Return whether the program still exists after a command, also if GDB refuses the command."""
    try:
        execute(command)
    except gdb.error:
        return command != "continue" and bool(gdb.selected_inferior().pid)
    return bool(gdb.selected_inferior().pid)


def _sp(frame: gdb.Frame) -> int:
    return int(frame.read_register("sp")) & (1 << 64) - 1


def _frames(base: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    try:
        for frame in chain():
            if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
                found.append((frame.pc(), _sp(frame) - base))
            if len(found) > _MOST_FRAMES:
                break
    except gdb.error:
        pass  # the stack ends with an error
    # GDB 13 shows a frame with the pc 0 in place of the end, if a plugin knows that.
    return found if not found or found[-1][0] else found[:-1]
