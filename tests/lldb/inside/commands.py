"""The plugin's own commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lldb

from tests.lldb.inside.program import Program


def run(
    debugger: lldb.SBDebugger, commands: Sequence[str], program: dict[str, Any] | None = None
) -> list[tuple[bool, str, str]]:
    """Return, for each command, whether it succeeded, and its output; with a stopped program, or without any."""
    inside = Program(debugger)
    if program is None:
        return [inside.attempt(command) for command in commands]
    with inside.started(program):
        return [inside.attempt(command) for command in commands]


def of_frames(
    debugger: lldb.SBDebugger, command: str, frames: Sequence[int], program: dict[str, Any]
) -> list[tuple[tuple[bool, str, str], tuple[bool, str, str]]]:
    """Return what a command answers for frames of a stopped program: while each is selected, and while frame 0 is.

    A client that selects another frame after LLDB has given the command its own frame leads to the second state.
    """
    inside = Program(debugger)
    with inside.started(program):
        inside.attempt(command)  # its output may begin with a remark that a session prints once
        answers = []
        for index in frames:
            frame = inside.thread.GetFrameAtIndex(index)
            inside.thread.SetSelectedFrame(index)
            selected = inside.attempt(command, frame)
            inside.thread.SetSelectedFrame(0)
            answers.append((selected, inside.attempt(command, frame)))
        return answers


def complete(debugger: lldb.SBDebugger, typed: Sequence[str]) -> dict[str, list[str]]:
    """Return LLDB's completions for a typed text."""
    offered = {}
    for text in typed:
        matches = lldb.SBStringList()
        debugger.GetCommandInterpreter().HandleCompletion(text, len(text), 0, 100, matches)
        # The first one is their common prefix.
        offered[text] = sorted(matches.GetStringAtIndex(index) for index in range(1, matches.GetSize()))
    return offered
