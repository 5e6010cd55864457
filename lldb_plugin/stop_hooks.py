"""The plugin's stop-hooks, active in a target only while it needs them.

A stop-hook changes how LLDB treats those of the user: it prints a header for each hook where several are active, and
the process stays stopped if one of them does not ask to continue.  To add a hook, LLDB takes its lock for parsing
options, which is not possible while it asks for frames.  So both hooks are made at the beginning, in the dummy target.
Later targets get copies of the list:

- The first hook is for the first stop in each target: a process can have come before its program.  It then deletes
  itself from the target.  To delete it earlier, where a program came first, would take a command at a moment when the
  user may be running one; LLDB keeps the contexts of commands in one stack, without a lock.
- The second hook is disabled until SFrame changes a stack, or may change one.  All targets of a debugger share it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import lldb

from lldb_plugin.interpreter import run

_MODULE = "sframe_lldb"
"""Where LLDB looks for the classes."""


class _Hooks(NamedTuple):
    """LLDB's numbers of the hooks of a debugger."""

    first_stop: str
    changes: str


_hooks: dict[int, _Hooks] = {}
"""By debugger."""
_needed: set[int] = set()
"""The debuggers whose second hook is enabled."""
_left: set[int] = set()
"""LLDB's numbers of the targets from which the first hook is gone."""


def add(debugger: lldb.SBDebugger) -> None:
    """Make the hooks for the later targets of a debugger."""
    dummy = debugger.GetDummyTarget()
    made = []
    for name in ("SFrameFirstStop", "SFrameStopHook"):
        said = run(debugger, f"target stop-hook add -P {_MODULE}.{name}", dummy)
        made.append(said.partition("#")[2].partition(" ")[0])
    hooks = _hooks[debugger.GetID()] = _Hooks(*made)
    _switch("disable", hooks.changes, debugger, lldb.SBExecutionContext(dummy))


def leave(context: lldb.SBExecutionContext) -> None:
    """Delete the first hook from a target; the hook itself calls this.  LLDB goes through a copy of its list.

    :param context: of the stop.
    """
    debugger = context.GetTarget().GetDebugger()
    hooks = _hooks.get(debugger.GetID())
    if hooks is not None:
        _left.add(context.GetTarget().GetGloballyUniqueID())
        _switch("delete", hooks.first_stop, debugger, context)


def need(context: lldb.SBExecutionContext) -> None:
    """Enable the second hook, if the first one is gone from the target; this waits for no lock of LLDB's."""
    debugger = context.GetTarget().GetDebugger()
    hooks = _hooks.get(debugger.GetID())
    if context.GetTarget().GetGloballyUniqueID() not in _left:
        return
    if hooks is not None and debugger.GetID() not in _needed:
        _needed.add(debugger.GetID())
        _switch("enable", hooks.changes, debugger, context)


def need_no_more(context: lldb.SBExecutionContext) -> None:
    """Disable the second hook, as SFrame changes no stack of a target.

    :param context: of the stop.
    """
    debugger = context.GetTarget().GetDebugger()
    hooks = _hooks.get(debugger.GetID())
    if hooks is not None and debugger.GetID() in _needed:
        _needed.discard(debugger.GetID())
        _switch("disable", hooks.changes, debugger, context)


def enable() -> Iterator[lldb.SBDebugger]:
    """Enable the first hook of each debugger, and yield the debugger."""
    for debugger, hooks in _debuggers():
        _switch("enable", hooks.first_stop, debugger, lldb.SBExecutionContext(debugger.GetDummyTarget()))
        yield debugger


def disable() -> Iterator[lldb.SBDebugger]:
    """Disable both hooks of each debugger, and yield the debugger."""
    _needed.clear()
    for debugger, hooks in _debuggers():
        for hook in hooks:
            _switch("disable", hook, debugger, lldb.SBExecutionContext(debugger.GetDummyTarget()))
        yield debugger


def _debuggers() -> Iterator[tuple[lldb.SBDebugger, _Hooks]]:
    for identifier, hooks in list(_hooks.items()):
        debugger = lldb.SBDebugger.FindDebuggerWithID(identifier)
        if debugger.IsValid():
            yield debugger, hooks


def _switch(action: str, hook: str, debugger: lldb.SBDebugger, context: lldb.SBExecutionContext) -> None:
    """Enable, disable or delete a hook; nothing happens if the user has deleted it.

    :param context: a command that starts at the same moment in another thread can get this context instead of its own.
    """
    result = lldb.SBCommandReturnObject()
    debugger.GetCommandInterpreter().HandleCommand(f"target stop-hook {action} {hook}", context, result)
