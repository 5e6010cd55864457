"""Several targets, and a target that is started again."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lldb

from tests.lldb.inside.program import Program


def several(debugger: lldb.SBDebugger, programs: Sequence[dict[str, Any]], plugin_file: str) -> list[tuple[str, str]]:
    """Return stack and verdict for two targets in this debugger, and for one in another debugger of the process."""
    inside = Program(debugger)
    stacks = []
    with inside.started(programs[0]), inside.started(programs[1]):
        for index in (0, 1, 0):
            debugger.SetSelectedTarget(debugger.GetTargetAtIndex(index))
            stacks.append((inside.run("bt"), _verdict(inside)))
        other = lldb.SBDebugger.Create(False)
        second = Program(other)
        second.run(f'command script import "{plugin_file}"')
        with second.started(programs[0]):
            stacks.append((second.run("bt"), _verdict(second)))
        stacks.append((inside.run("bt"), _verdict(inside)))
    return stacks


def again(debugger: lldb.SBDebugger, program: dict[str, Any], other: str) -> list[list[str]]:
    """Return functions and verdict of a program that is started, started again, and started after it was rebuilt."""
    inside = Program(debugger)
    with inside.started(program):
        shown = [_functions(inside)]
        for replaced in (False, True):
            inside.target.GetProcess().Detach()
            if replaced:
                Path(program["executable"]).unlink()
                shutil.copy(other, program["executable"])
            inside.run("process launch -o /dev/null")
            shown.append(_functions(inside))
        return shown


def _functions(inside: Program) -> list[str]:
    return [*(frame.GetFunctionName() or "??" for frame in inside.thread), _verdict(inside)]


def _verdict(inside: Program) -> str:
    return inside.run("sframe compare").splitlines()[-1]
