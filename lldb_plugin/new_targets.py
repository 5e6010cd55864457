"""Registers the provider with targets that are created later; LLDB announces new targets only as events."""

from __future__ import annotations

import functools
import threading
from typing import Any

import lldb

from lldb_plugin import renewal, stop_hooks
from lldb_plugin.lock import acquire
from lldb_plugin.session import SESSION
from lldb_plugin.targets import fetch, is_plugged, plug_in, plugged, unplug_all, unplug_at_stop
from sframe_unwind.debugger.settings import OFF

_FOREVER = (1 << 32) - 1
_PATIENCE = 5.0
"""Seconds to wait for LLDB's lock on a target; whoever holds it may be starting a process."""
_BEFORE_THREADS = (lldb.eStateInvalid, lldb.eStateUnloaded, lldb.eStateLaunching)
"""States in which there is no process, or it is being started."""
_EVENTS = (lldb.SBTarget.GetBroadcasterClassName(), lldb.SBTarget.eBroadcastBitModulesLoaded)


class SFrameStopHook:
    """Completes at a stop what could not be done when LLDB asked for frames, and plugs in where libraries came."""

    def __init__(self, target: lldb.SBTarget, extra_args: Any, internal_dict: dict[str, Any]) -> None:
        pass

    def handle_stop(self, exe_ctx: lldb.SBExecutionContext, stream: lldb.SBStream) -> bool:
        """Plug in if needed, and stay stopped; in mode ``off``, take the provider back, and then the hook."""
        if not _handle_stop(exe_ctx):
            stop_hooks.need_no_more(exe_ctx)
        return True


class SFrameFirstStop:
    """The same once, at the first stop in a target: its process can have come before its program."""

    def __init__(self, target: lldb.SBTarget, extra_args: Any, internal_dict: dict[str, Any]) -> None:
        pass

    def handle_stop(self, exe_ctx: lldb.SBExecutionContext, stream: lldb.SBStream) -> bool:
        """Plug in if needed, and stay stopped."""
        _handle_stop(exe_ctx)
        if SESSION.settings.mode != OFF:
            stop_hooks.leave(exe_ctx)
        return True


def _handle_stop(exe_ctx: lldb.SBExecutionContext) -> bool:
    """Return whether a stop-hook is needed at the next stop."""
    target = exe_ctx.GetTarget()
    if SESSION.settings.mode == OFF:
        unplug_at_stop(target)
        rest()
        return True  # or it has been disabled
    plug_in(target, has_frames=True)
    renewal.now(target)
    fetch(exe_ctx.GetThread())
    return not SESSION.leaves_frames_alone(target.GetProcess())


def watch(debugger: lldb.SBDebugger) -> None:
    """Register the provider with each target as soon as it has a program, before it has a process.

    So nothing is shown twice; see :mod:`lldb_plugin.event_thread`.
    """
    stop_hooks.add(debugger)
    _listener().StartListeningForEventClass(debugger, *_EVENTS)


def rest() -> None:
    """Watch no target, unless one still has the provider: its next stop takes that back."""
    kept = plugged()
    for target in kept:
        stop_hooks.need(lldb.SBExecutionContext(target))
    if not kept:
        for debugger in stop_hooks.disable():
            _listener().StopListeningForEventClass(debugger, *_EVENTS)


def watch_again() -> None:
    """Watch targets as before :func:`rest`."""
    for debugger in stop_hooks.enable():
        _listener().StartListeningForEventClass(debugger, *_EVENTS)


@functools.cache
def _listener() -> lldb.SBListener:
    """Return the listener for all debuggers; a thread waits for its events."""
    listener = lldb.SBListener("sframe-unwind")
    threading.Thread(target=_listen, args=(listener,), name="sframe-unwind", daemon=True).start()
    return listener


def _listen(listener: lldb.SBListener) -> None:
    event = lldb.SBEvent()
    while True:
        if listener.WaitForEvent(_FOREVER, event):
            # LLDB sends events of the targets that it has, also after their class is not listened to any more.
            if SESSION.settings.mode != OFF:
                _plug_in_early(lldb.SBTarget.GetTargetFromEvent(event))
            event.Clear()  # it would keep the target alive
            if SESSION.settings.mode == OFF:  # a command has set it meanwhile, and there was no provider to remove yet
                unplug_all()


def _plug_in_early(target: lldb.SBTarget) -> None:
    """Plug in while there is no process, or one that has no threads yet; later, that is for a stop-hook to do.

    A program that is started at once, as by ``lldb -o run``, has a process before this thread runs.
    """
    process = target.GetProcess()
    if is_plugged(target):
        return
    if not process.IsValid():
        plug_in(target, has_frames=False)  # commands can have the lock one after the other until there is a process
        return
    if SESSION.knows(process):  # the hook of its first stop is gone
        if not SESSION.leaves_frames_alone(process):
            stop_hooks.need(lldb.SBExecutionContext(target))
        return
    mutex = target.GetAPIMutex()
    if not acquire(mutex, _PATIENCE):
        return
    try:
        if process.GetState() in _BEFORE_THREADS:
            plug_in(target, has_frames=False)  # nobody may be waited for with the lock held
    finally:
        mutex.unlock()
