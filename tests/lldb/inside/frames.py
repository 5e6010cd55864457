"""The contents of the frames of a stopped program."""

from __future__ import annotations

import json
import sys
from typing import Any

import lldb

from tests.lldb.inside.program import Program


def native_and_strict(debugger: lldb.SBDebugger, program: dict[str, Any]) -> dict[str, Any]:
    """Return the frames of a program at its place, as LLDB's own and as SFrame's."""
    inside = Program(debugger)
    with inside.started(program):
        native = [_described(frame) for frame in inside.thread]
        inside.run("sframe strict on")
        return {"native": native, "strict": [_described(frame) for frame in inside.thread]}


def at_each_step(debugger: lldb.SBDebugger, program: dict[str, Any], setting: str, steps: int) -> list[Any]:
    """Return the frames of a program after each of some steps, which return to callers several times.

    :param setting: the command that sets the mode.
    """
    inside = Program(debugger)
    inside.run(setting)
    found = []
    with inside.started(program):
        inside.run("thread step-out")
        for _ in range(steps):
            inside.run("thread step-in")
            found.append([_described(frame) for frame in inside.thread])
    return found


def _described(frame: lldb.SBFrame) -> dict[str, Any]:
    # In scope or not: LLDB 23.1 takes a variable of a script for one that is not in scope.
    variables = frame.GetVariables(True, True, False, False)
    return {
        "pc": frame.GetPC(),
        "name": frame.GetDisplayFunctionName(),
        "line": frame.GetLineEntry().GetLine(),
        "synthetic": frame.IsSynthetic(),
        "inlined": frame.IsInlined(),
        "artificial": frame.IsArtificial(),
        "variables": {value.GetName(): value.GetValue() for value in variables if value.GetValue() is not None},
        "registers": {register.GetName(): register.GetValue() for group in frame.GetRegisters() for register in group},
    }


def reads_of_native_frames(debugger: lldb.SBDebugger, program: dict[str, Any]) -> dict[str, Any]:
    """Return how many of LLDB's frames are read for a stack in strict mode, its number of frames, and the comparison.

    The comparison is also returned as it is without the provider.
    """
    inside = Program(debugger)
    read = []
    original = lldb.SBThread.GetFrameAtIndex

    def counted(thread: lldb.SBThread, index: int) -> lldb.SBFrame:
        read.append(index)
        return original(thread, index)

    with inside.started(program):
        alone = inside.run("sframe compare --json")
        lldb.SBThread.GetFrameAtIndex = counted
        inside.run("sframe strict on")
        count = inside.thread.GetNumFrames()
        lldb.SBThread.GetFrameAtIndex = original
        compared = inside.run("sframe compare --json")
    return {"read": len(read), "frames": count, "alone": json.loads(alone), "compared": json.loads(compared)}


def planned_at_once(debugger: lldb.SBDebugger, program: dict[str, Any]) -> dict[str, Any]:
    """Return the frames to show of a recursion, and the same if each of them is walked."""
    from lldb_plugin.frames import frame_plan
    from lldb_plugin.frames.native import NativeStack
    from lldb_plugin.plugin import the_plugin
    from lldb_plugin.process.inlining import Scopes

    inside = Program(debugger)
    inside.run("sframe mode off")
    with inside.started(program):
        session = the_plugin().engine().session
        process = session.process(inside.target.GetProcess())
        native = NativeStack(process, inside.thread)
        plans = []
        for few in (frame_plan._FEW, 0):
            frame_plan._FEW = few
            settings = session.settings._replace(mode="auto")
            plans.append(frame_plan.plan(process, native, settings, Scopes(inside.target)))
        at_once, walked = ([_as_text(shown) for shown in one.shown] for one in plans)
        same_walk = list(plans[0].walked) == list(plans[1].walked)
        return {"at once": at_once, "walked": walked, "same walk": same_walk, "skips": plans[0].shown.plain() is None}


def _as_text(shown: Any) -> str:
    return str(shown if isinstance(shown, int) else (shown.frame, shown.scope.pc, shown.scope.is_inlined))


def stacks_that_rules_did_not_decide(debugger: lldb.SBDebugger, program: dict[str, Any]) -> dict[str, Any]:
    """Return how often the plugin compared all frames of a stack, from the start of a program to a stop.

    Also returned are the modules that only such a comparison needs, and the stack in the dynamic linker, where LLDB
    stops by itself, in mode `auto` and in mode `off`.
    """
    from lldb_plugin.lifecycle.decision import Decisions

    inside = Program(debugger)
    compared = 0
    original = Decisions._planner

    def counted(decisions: Decisions) -> Any:
        nonlocal compared
        compared += 1
        return original(decisions)

    patched: Any = Decisions
    patched._planner = counted
    with inside.started({**program, "place": "_dl_debug_state"}):
        shown = [(frame.GetPC(), frame.GetSP()) for frame in inside.thread]
        inside.run(f"breakpoint set -n {program['place']}")
        inside.run("breakpoint disable 1")
        inside.run("process continue")
        inside.run("thread step-over")
        loaded = sorted(
            {"planning", "frame_plan", "scripted_frame", "native"} & {name.rpartition(".")[2] for name in sys.modules}
        )
    inside.run("sframe mode off")
    with inside.started({**program, "place": "_dl_debug_state"}):
        alone = [(frame.GetPC(), frame.GetSP()) for frame in inside.thread]
    return {"compared": compared, "loaded": loaded, "shown": shown, "alone": alone}


def calls_for_deep_stack(debugger: lldb.SBDebugger, program: dict[str, Any]) -> dict[str, Any]:
    """Return how often the plugin asks LLDB for frames, registers and memory from a start to a step, and the stack.

    The stack is also returned in mode `off`.
    """
    inside = Program(debugger)
    calls = 0

    def count(kind: type, name: str) -> None:
        original = getattr(kind, name)

        def counted(*arguments: Any) -> Any:
            nonlocal calls
            calls += 1
            return original(*arguments)

        setattr(kind, name, counted)

    count(lldb.SBThread, "GetFrameAtIndex")
    count(lldb.SBFrame, "GetFP")
    count(lldb.SBProcess, "ReadMemory")
    with inside.started(program):
        inside.run("thread step-over")
        made = calls
        shown = [(frame.GetPC(), frame.GetSP()) for frame in inside.thread]
        inside.run("sframe mode off")
        return {"calls": made, "shown": shown, "alone": [(frame.GetPC(), frame.GetSP()) for frame in inside.thread]}
