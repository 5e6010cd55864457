"""Shows the stack below run-time code at each stop of a program."""

from __future__ import annotations

import sys
from typing import Any

import lldb

from tests.lldb.inside.program import Program


def stops(
    debugger: lldb.SBDebugger, program: dict[str, Any], commands: list[str], elftools: bool = True
) -> list[dict[str, Any]]:
    """Return LLDB's stacks in each mode, and the output of commands, at each stop of a program at its place.

    :param elftools: whether the plugin can import pyelftools.
    """
    if not elftools:
        sys.modules["elftools"] = None  # type: ignore[assignment]  # the interpreter's way to refuse a module
    inside = Program(debugger)
    shown = []
    with inside.started(program):
        while inside.target.GetProcess().GetState() == lldb.eStateStopped:
            stop: dict[str, Any] = {}
            for mode in ("off", "always"):
                inside.run(f"sframe mode {mode}")
                stop[mode] = [(frame.GetPC(), frame.GetFunctionName() or "") for frame in inside.thread]
            stop["commands"] = [inside.run(command) for command in commands]
            shown.append(stop)
            inside.run("process continue")
    return shown
