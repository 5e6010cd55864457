"""The plugin as one thing: its commands, and its provider in every target."""

from __future__ import annotations

import time
from typing import Any

import lldb

from lldb_plugin.session import SESSION
from sframe_unwind import __version__

SFrameFrameProvider: Any
try:
    from lldb_plugin.provider import SFrameFrameProvider
except ImportError:  # LLDB before 22
    SFrameFrameProvider = None

_MODULE = "sframe_lldb"
"""Where LLDB looks for the classes."""

_SHOWING = 0.3
_SETTLING = 0.02
"""Seconds to wait for LLDB's event thread.

A registration with a stopped process makes that thread show the frame again.  LLDB 22.1.0 fetches frames from a
provider without a lock: a backtrace meanwhile gets them in disorder.
"""

_debuggers: dict[int, lldb.SBDebugger] = {}


def lacks() -> str:
    """Return what the running LLDB lacks, in words."""
    if SFrameFrameProvider is None:
        return "this LLDB has no scripted frame provider (LLDB 22 has): bt is its own, the sframe commands work"
    return "this LLDB lacks nothing that this needs"


class SFrameStopHook:
    """Plugs the provider into a target at its first stop: LLDB registers providers for targets that exist."""

    def __init__(self, target: lldb.SBTarget, extra_args: Any, internal_dict: dict[str, Any]) -> None:
        pass

    def handle_stop(self, exe_ctx: lldb.SBExecutionContext, stream: lldb.SBStream) -> bool:
        """Plug in, and stay stopped."""
        plug_in(exe_ctx.GetTarget())
        return True


def start(debugger: lldb.SBDebugger) -> None:
    """Make the commands and plug in; a second time changes nothing."""
    if debugger.GetID() in _debuggers:
        return
    _debuggers[debugger.GetID()] = debugger
    _run(debugger, "command container add -h 'Unwind stack frames from SFrame data, and show what it says.' sframe")
    for name, kind in (
        ("mode", "Mode"),
        ("status", "Status"),
        ("backtrace", "Backtrace"),
        ("bt", "Backtrace"),
        ("compare", "Compare"),
        ("explain", "Explain"),
    ):
        _run(debugger, f"command script add -o -c {_MODULE}.{kind} sframe {name}")
    if SFrameFrameProvider is not None:
        for index in range(debugger.GetNumTargets()):
            plug_in(debugger.GetTargetAtIndex(index))
        _run(debugger, f"target stop-hook add -P {_MODULE}.SFrameStopHook", debugger.GetDummyTarget())
        line = "stack frames are unwound from SFrame; see 'help sframe'"
    else:
        line = lacks()
    print(f"sframe-unwind {__version__}: {line}")


def set_mode(mode: str) -> None:
    """Change the mode, for frames that are already shown too."""
    SESSION.mode = mode
    for debugger in _debuggers.values():
        for index in range(debugger.GetNumTargets()):
            plug_in(debugger.GetTargetAtIndex(index), again=True)


_plugged: list[_Plugged] = []


def plug_in(target: lldb.SBTarget, again: bool = False) -> None:
    """Register the provider with a target that has it not; ``again`` makes LLDB forget the frames that it knows."""
    if SFrameFrameProvider is None or not target.IsValid():
        return
    known = next((plugged for plugged in _plugged if plugged.target == target), None)
    if known is not None and not again:
        return
    if known is None:
        known = _Plugged(target)
        _plugged.append(known)
    known.register()


class _Plugged:
    """A target that the provider is registered with."""

    def __init__(self, target: lldb.SBTarget) -> None:
        self.target = target
        self._id: int | None = None

    def register(self) -> None:
        """Register, in place of an earlier registration.

        LLDB 23 wants the earlier one removed; LLDB 22 removes none by the number that it gave, but replaces it.
        """
        if self._id is not None:
            self.target.RemoveScriptedFrameProvider(self._id)
        arguments = lldb.SBStructuredData()
        arguments.SetFromJSON("{}")
        error = lldb.SBError()
        shown = SESSION.shown_elsewhere
        shown.clear()
        self._id = self.target.RegisterScriptedFrameProvider(f"{_MODULE}.SFrameFrameProvider", arguments, error)
        if not error.Success():
            SESSION.report(f"LLDB does not take the frame provider: {error.GetCString()}")
        elif self.target.GetProcess().GetState() == lldb.eStateStopped and shown.wait(_SHOWING):
            time.sleep(_SETTLING)


def _run(debugger: lldb.SBDebugger, command: str, target: lldb.SBTarget | None = None) -> None:
    """Run a command of LLDB's without showing what it prints."""
    result = lldb.SBCommandReturnObject()
    interpreter = debugger.GetCommandInterpreter()
    if target is None:
        interpreter.HandleCommand(command, result)
    else:
        interpreter.HandleCommand(command, lldb.SBExecutionContext(target), result)
    if not result.Succeeded():
        SESSION.report(f"{command}: {result.GetError().strip()}")
