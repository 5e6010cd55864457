"""The plugin's stop-hooks, active in a target only while it needs them.

A stop-hook changes how LLDB treats those of the user: it prints a header for each hook where several are active, and
the process stays stopped if one of them does not ask to continue.  To add a hook, LLDB takes its lock for parsing
options, which is not possible while it asks for frames.  So both hooks are made at the beginning, in the dummy target.
Later targets get copies of the list:

- The first hook is for the first stop in each target: a process can have come before its program.  It then deletes
  itself from the target.  No other thread could: LLDB's list of hooks has no lock.
- The second hook does the same.  It is disabled until SFrame changes a stack, or may change one.

All targets of a debugger share the hooks, of which one is enabled at any time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import lldb

from lldb_plugin.interpreter import OwnInterpreter, run

_CLASS = "sframe_lldb.SFrameStopHook"
"""The class of both hooks, in the module in which LLDB looks for it."""


class _Hooks(NamedTuple):
    """LLDB's numbers of the hooks of a debugger."""

    first_stop: str
    changes: str


_interpreter = OwnInterpreter()
_hooks: dict[int, _Hooks] = {}
"""By debugger."""
_needed: set[int] = set()
"""The debuggers whose second hook is enabled."""
_left: set[int] = set()
"""LLDB's numbers of the targets from which the first hook is gone."""


def add(debugger: lldb.SBDebugger) -> None:
    """Make the hooks for the later targets of a debugger."""
    said = [run(debugger, f"target stop-hook add -P {_CLASS}", debugger.GetDummyTarget()) for _ in _Hooks._fields]
    hooks = _hooks[debugger.GetID()] = _Hooks(*(line.partition("#")[2].partition(" ")[0] for line in said))
    _switch("disable", hooks.changes, debugger)


def leave(context: lldb.SBExecutionContext) -> None:
    """Delete the first hook from a target; the hook itself calls this.  LLDB goes through a copy of its list.

    :param context: of the stop.
    """
    target = context.GetTarget().GetGloballyUniqueID()
    debugger = context.GetTarget().GetDebugger()
    hooks = _hooks.get(debugger.GetID())
    if hooks is not None and target not in _left:
        _left.add(target)
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
        _switch("disable", hooks.first_stop, debugger)


def need_no_more(context: lldb.SBExecutionContext) -> None:
    """Disable the second hook, as SFrame changes no stack of a target.

    :param context: of the stop.
    """
    debugger = context.GetTarget().GetDebugger()
    hooks = _hooks.get(debugger.GetID())
    if hooks is not None and debugger.GetID() in _needed:
        _needed.discard(debugger.GetID())
        _switch("enable", hooks.first_stop, debugger)
        _switch("disable", hooks.changes, debugger, context)


def enable() -> Iterator[lldb.SBDebugger]:
    """Enable the first hook of each debugger, and yield the debugger."""
    for debugger, hooks in _debuggers():
        _switch("enable", hooks.first_stop, debugger)
        yield debugger


def disable() -> Iterator[lldb.SBDebugger]:
    """Disable both hooks of each debugger, and yield the debugger."""
    _needed.clear()
    for debugger, hooks in _debuggers():
        for hook in hooks:
            _switch("disable", hook, debugger)
        yield debugger


def _debuggers() -> Iterator[tuple[lldb.SBDebugger, _Hooks]]:
    for identifier, hooks in list(_hooks.items()):
        debugger = lldb.SBDebugger.FindDebuggerWithID(identifier)
        if debugger.IsValid():
            yield debugger, hooks


def _switch(action: str, hook: str, debugger: lldb.SBDebugger, context: lldb.SBExecutionContext | None = None) -> None:
    """Enable, disable or delete a hook; nothing happens if the user has deleted it.

    :param context: ``None``: that of later targets.
    """
    context = context or lldb.SBExecutionContext(debugger.GetDummyTarget())
    _interpreter.run(f"target stop-hook {action} {hook}", context)
