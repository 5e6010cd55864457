"""Stops a program at given instructions, and collects the stacks and where steps end; used by `lab.code.stops`."""

from __future__ import annotations

from typing import Any

import lldb

from tests.lldb.inside.program import Program

_MOST_HITS = 3
"""Maximum number of stops at one instruction: a loop must not be all that is seen."""
_MOST_FRAMES = 200


def collect(
    debugger: lldb.SBDebugger,
    program: dict[str, Any],
    places: list[int],
    count: int,
    commands: list[str],
    moves: list[str],
) -> list[dict[str, Any]]:
    """Return the stack at each stop, by pc, and the pc after the commands that move on.

    A frame of a plugin has no registers before LLDB 24.  So only the innermost frame has an SP, which counts from that
    of the first stop, and a CFA, by which LLDB tells whether a step has entered a function.

    :param places: the addresses of the breakpoints.
    :param count: maximum number of stops.
    :param moves: commands, of which each stop runs the next one.
    """
    driven = Program(debugger)
    for command in commands:
        driven.run(command)
    found: list[dict[str, Any]] = []
    with driven.started({**program, "place": "no_such_place", "runs": False, "stop at entry": True}):
        target, process = driven.target, driven.target.GetProcess()
        points = {address: target.BreakpointCreateByAddress(address) for address in places}
        hits: dict[int, int] = {}
        base: int | None = None
        while len(found) < count and _goes_on(driven, "continue"):
            if driven.thread.GetStopReason() == lldb.eStopReasonPlanComplete:
                continue  # a command that a breakpoint interrupted has ended; LLDB finds out when by the innermost CFA
            pc = driven.thread.GetFrameAtIndex(0).GetPC()
            hits[pc] = hits.get(pc, 0) + 1
            if hits[pc] == _MOST_HITS and pc in points:
                target.BreakpointDelete(points[pc].GetID())
            innermost = driven.thread.GetFrameAtIndex(0)
            sp = innermost.GetSP()
            base = sp if base is None else base
            stop: dict[str, Any] = {
                "sp": sp - base,
                "cfa": innermost.GetCFA() - base,
                "frames": _frames(driven.thread),
                "move": moves[len(found) % len(moves)],
            }
            if stop["move"]:
                goes_on = _goes_on(driven, stop["move"])
                stop["after"] = _frames(driven.thread)[:1] if goes_on else []
                stop["cfa after"] = driven.thread.GetFrameAtIndex(0).GetCFA() - base if goes_on else None
                # With or without a plugin, LLDB may report a breakpoint to which a step has led, or may not.
                for (reached,) in stop["after"]:
                    if reached in points:
                        target.BreakpointDelete(points[reached].GetID())
            found.append(stop)
        process.Kill()
    return found


def _goes_on(driven: Program, command: str) -> bool:
    """Return whether the process is stopped after a command, also if LLDB refuses the command."""
    driven.attempt(command)
    return bool(driven.target.GetProcess().GetState() == lldb.eStateStopped)


def _frames(thread: lldb.SBThread) -> list[tuple[int]]:
    count = min(thread.GetNumFrames(), _MOST_FRAMES)
    frames = (thread.GetFrameAtIndex(index) for index in range(count))
    return [(frame.GetPC(),) for frame in frames if not frame.IsInlined()]
