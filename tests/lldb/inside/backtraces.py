"""Backtraces of stopped programs in the plugin's modes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import lldb

from tests.lldb.inside.program import Program


def collect(debugger: lldb.SBDebugger, programs: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return, for each program and each time that it reaches its place, the stacks in each mode."""
    inside = Program(debugger)
    answers = []
    for program in programs:
        with inside.started(program):
            stops = []
            for hit in range(program["hits"]):
                if hit:
                    inside.run("process continue")
                stops.append(_modes(inside))
            answers.append(stops)
    return answers


def plain(debugger: lldb.SBDebugger, programs: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the same without the plugin."""
    inside = Program(debugger)
    answers = []
    for program in programs:
        with inside.started(program):
            stops = [_shown(inside)]
            for _ in range(program["hits"] - 1):
                inside.run("process continue")
                stops.append(_shown(inside))
            answers.append(stops)
    return answers


def beyond(debugger: lldb.SBDebugger, program: dict[str, Any]) -> dict[str, Any]:
    """Return the output of the commands for a program whose registers LLDB cannot read; it cannot be run to a place."""
    inside = Program(debugger)
    with inside.started({**program, "runs": False}):
        return {"status": inside.run("sframe status"), "backtrace": inside.attempt("sframe backtrace")}


def _modes(inside: Program) -> dict[str, Any]:
    # First as after the stop, and then as after each change of the mode.
    shown = {"first": _shown(inside)}
    for mode in ("off", "fallback", "always"):
        inside.run(f"sframe mode {mode}")
        shown[mode] = _shown(inside)
    return {
        **shown,
        "compare": json.loads(inside.run("sframe compare -all --json")),
        "verdict": inside.run("sframe compare").splitlines()[-1],
        "status": inside.run("sframe status"),
        "explain": inside.attempt("sframe explain"),
    }


def _shown(inside: Program) -> dict[str, Any]:
    bt = inside.run("bt")
    threads = [[_frame(frame) for frame in thread] for thread in inside.target.GetProcess()]
    return {"bt": bt, "threads": threads, "selected": inside.thread.GetIndexID(), "all": inside.run("bt all")}


def _frame(frame: lldb.SBFrame) -> dict[str, Any]:
    function = frame.GetDisplayFunctionName() or "??"
    arguments = frame.GetVariables(True, False, False, True)
    return {
        "name": function.partition("(")[0],
        "pc": frame.GetPC(),
        "line": frame.GetLineEntry().GetLine(),
        "arguments": {value.GetName(): value.GetValue() or "unavailable" for value in arguments},
        "registers": sum(group.GetNumChildren() for group in frame.GetRegisters()),
    }
