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


def complete(debugger: lldb.SBDebugger, typed: Sequence[str]) -> dict[str, list[str]]:
    """Return LLDB's completions for a typed text."""
    offered = {}
    for text in typed:
        matches = lldb.SBStringList()
        debugger.GetCommandInterpreter().HandleCompletion(text, len(text), 0, 100, matches)
        # The first one is their common prefix.
        offered[text] = sorted(matches.GetStringAtIndex(index) for index in range(1, matches.GetSize()))
    return offered
