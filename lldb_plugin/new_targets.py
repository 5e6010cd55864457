"""Targets that come to be after the plugin was loaded: LLDB tells nobody of them but who listens to its events."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from typing import Any

import lldb

from lldb_plugin import renewal
from lldb_plugin.interpreter import run
from lldb_plugin.lock import acquire
from lldb_plugin.session import SESSION
from lldb_plugin.targets import any_plugged, fetch, is_plugged, plug_in, unplug_all, unplug_at_stop
from sframe_unwind.debugger.settings import OFF

_FOREVER = (1 << 32) - 1
_PATIENCE = 5.0
"""Seconds to wait for LLDB's lock on a target; whoever holds it may be starting a process."""
_HOOK = "sframe_lldb.SFrameStopHook"
"""Where LLDB looks for the class."""
_BEFORE_THREADS = (lldb.eStateInvalid, lldb.eStateUnloaded, lldb.eStateLaunching)
"""States without a process, and of one that is being started."""
_EVENTS = (lldb.SBTarget.GetBroadcasterClassName(), lldb.SBTarget.eBroadcastBitModulesLoaded)

_hooks: dict[int, str] = {}
"""By debugger: LLDB's number of the stop-hook."""


class SFrameStopHook:
    """Plugs the provider into a target at its first stop, where nothing did so before.

    A stop-hook of the dummy target is copied to each later target: one that a process came with, as by attaching to it.
    """

    def __init__(self, target: lldb.SBTarget, extra_args: Any, internal_dict: dict[str, Any]) -> None:
        pass

    def handle_stop(self, exe_ctx: lldb.SBExecutionContext, stream: lldb.SBStream) -> bool:
        """Plug in, and stay stopped; in mode ``off``, take the provider back, and then the hook."""
        if SESSION.settings.mode == OFF:
            unplug_at_stop(exe_ctx.GetTarget())
            rest()
            return True
        plug_in(exe_ctx.GetTarget(), has_frames=True)
        renewal.now(exe_ctx.GetTarget())
        fetch(exe_ctx.GetThread())
        return True


def watch(debugger: lldb.SBDebugger) -> None:
    """Plug the provider into each target as soon as it has a program, before it has a process.

    Then nothing is shown twice; see :mod:`lldb_plugin.event_thread`.
    """
    said = run(debugger, f"target stop-hook add -P {_HOOK}", debugger.GetDummyTarget())
    _hooks[debugger.GetID()] = said.partition("#")[2].partition(" ")[0]
    _listener().StartListeningForEventClass(debugger, *_EVENTS)


def rest() -> None:
    """Watch no target, unless one still has the provider.

    A target shares the stop-hook with the dummy target that it has it from.
    """
    if any_plugged():
        return
    for debugger in _switch_hooks("disable"):
        _listener().StopListeningForEventClass(debugger, *_EVENTS)


def watch_again() -> None:
    """Watch targets as before :func:`rest`."""
    for debugger in _switch_hooks("enable"):
        _listener().StartListeningForEventClass(debugger, *_EVENTS)


def _switch_hooks(action: str) -> Iterator[lldb.SBDebugger]:
    for identifier, hook in _hooks.items():
        debugger = lldb.SBDebugger.FindDebuggerWithID(identifier)
        if debugger.IsValid():
            run(debugger, f"target stop-hook {action} {hook}", debugger.GetDummyTarget())
            yield debugger


@functools.cache
def _listener() -> lldb.SBListener:
    """Return the one listener for all debuggers, which a thread waits for."""
    listener = lldb.SBListener("sframe-unwind")
    threading.Thread(target=_listen, args=(listener,), name="sframe-unwind", daemon=True).start()
    return listener


def _listen(listener: lldb.SBListener) -> None:
    event = lldb.SBEvent()
    while True:
        if listener.WaitForEvent(_FOREVER, event):
            _plug_in_early(lldb.SBTarget.GetTargetFromEvent(event))
            event.Clear()  # it would keep the target
            if SESSION.settings.mode == OFF:  # a command has set it meanwhile, and found no provider to take back yet
                unplug_all()
                rest()


def _plug_in_early(target: lldb.SBTarget) -> None:
    """Plug in while there is no process, or one that has no threads yet; later, that is for the stop-hook to do.

    A program that is started at once, as by ``lldb -o run``, has a process before this thread gets its turn.
    """
    if is_plugged(target) or SESSION.knows(target.GetProcess()):
        return
    mutex = target.GetAPIMutex()
    if not acquire(mutex, _PATIENCE):
        return
    try:
        if target.GetProcess().GetState() in _BEFORE_THREADS:
            plug_in(target, has_frames=False)  # nobody may be waited for with the lock held
    finally:
        mutex.unlock()
