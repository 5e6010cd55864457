"""The plugin's own commands."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Any

import lldb

from tests.lldb.inside.program import Program


def run(
    debugger: lldb.SBDebugger, commands: Sequence[str], program: dict[str, Any] | None = None
) -> list[tuple[bool, str, str]]:
    """For each command: whether it succeeded, and what it said; with a stopped program, or with nothing at all."""
    inside = Program(debugger)
    if program is None:
        return [inside.attempt(command) for command in commands]
    with inside.started(program):
        return [inside.attempt(command) for command in commands]


def several(debugger: lldb.SBDebugger, programs: Sequence[dict[str, Any]], plugin_file: str) -> dict[str, Any]:
    """Two targets at once in this debugger, and one more in another debugger of the same process."""
    inside = Program(debugger)
    stacks = []
    with inside.started(programs[0]), inside.started(programs[1]):
        for index in (0, 1, 0):
            debugger.SetSelectedTarget(debugger.GetTargetAtIndex(index))
            stacks.append((inside.run("bt"), inside.run("sframe compare").splitlines()[-1]))
        other = lldb.SBDebugger.Create(False)
        second = Program(other)
        loaded = second.run(f'command script import "{plugin_file}"')
        with second.started(programs[0]):
            stacks.append((second.run("bt"), second.run("sframe compare").splitlines()[-1]))
        stacks.append((inside.run("bt"), inside.run("sframe compare").splitlines()[-1]))
    return {"stacks": stacks, "loaded": loaded}


def again(debugger: lldb.SBDebugger, program: dict[str, Any], other: str) -> list[list[str]]:
    """The frames of a program that is started twice, and then replaced by another build of itself, and started."""
    inside = Program(debugger)
    shown = []
    with inside.started(program):
        shown.append(_functions(inside))
        inside.target.GetProcess().Detach()
        inside.run(f"process launch -o /dev/null -- {' '.join(program['arguments'])}")
        shown.append(_functions(inside))
        inside.target.GetProcess().Detach()
        subprocess.run(["cp", "--remove-destination", other, program["executable"]], check=True, timeout=60)
        inside.run(f"process launch -o /dev/null -- {' '.join(program['arguments'])}")
        shown.append([*_functions(inside), inside.run("sframe compare").splitlines()[-1]])
    return shown


def _functions(inside: Program) -> list[str]:
    return [frame.GetFunctionName() or "??" for frame in inside.thread]


def use(debugger: lldb.SBDebugger, program: dict[str, Any]) -> dict[str, Any]:
    """What one does with frames: look at them, go up and down, step, finish."""
    inside = Program(debugger)
    with inside.started(program):
        frames = inside.run("bt")
        up = inside.run("up")
        variables = inside.run("frame variable")
        value = inside.attempt("expression -- value + 1")
        registers = inside.run("register read")
        inside.run("frame select 2")
        kept = (inside.run("sframe mode off"), inside.thread.GetSelectedFrame().GetFrameID())
        inside.run("sframe mode always")
        down = inside.run("down")
        inside.run("frame select 0")
        inside.run("finish")
        finished = inside.run("bt")
        inside.run("next")
        stepped = inside.run("bt")
        return {
            "bt": frames,
            "up": up,
            "variables": variables,
            "value": value,
            "registers": registers,
            "kept": kept,
            "down": down,
            "finished": finished,
            "stepped": stepped,
        }
