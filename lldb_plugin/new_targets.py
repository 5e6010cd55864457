"""Registers the provider with targets that are created later; LLDB announces new targets only as events."""

from __future__ import annotations

import functools
import threading
from typing import Any

import lldb

from lldb_plugin import event_thread, new_modules, renewal, stop_hooks
from lldb_plugin.session import SESSION
from lldb_plugin.shown_frames import fetch
from lldb_plugin.targets import fit, plugged
from sframe_unwind.debugger.settings import OFF

_MINUTE = 60
_UNLOADED = lldb.SBTarget.eBroadcastBitModulesUnloaded
_PATIENCE = 3.0
"""Seconds for which a debugger is kept from being destroyed while an event is handled."""
_watched: dict[int, lldb.SBDebugger] = {}
"""The debuggers whose events are handled, by LLDB's number.

LLDB could find them by the number, but its list of debuggers has a lock, which it holds while it destroys all of them.
"""
_handling = threading.Lock()
"""Held while an event is handled: no debugger is destroyed meanwhile."""
_EVENTS = (lldb.SBTarget.GetBroadcasterClassName(), lldb.SBTarget.eBroadcastBitModulesLoaded | _UNLOADED)


class SFrameStopHook:
    """Completes what could not be done when LLDB asked for frames, and registers the provider where libraries came."""

    def __init__(self, target: lldb.SBTarget, extra_args: Any, internal_dict: dict[str, Any]) -> None:
        pass

    def handle_stop(self, exe_ctx: lldb.SBExecutionContext, stream: lldb.SBStream) -> bool:
        """Register or remove the provider as needed, and stay stopped; disable the hooks that are not needed."""
        target = exe_ctx.GetTarget()
        fit(target, has_frames=True)
        if SESSION.settings.mode == OFF:
            rest()
            return True
        renewal.now(target)
        fetch(exe_ctx.GetThread())
        stop_hooks.leave(exe_ctx)
        if SESSION.leaves_frames_alone(target.GetProcess()):
            stop_hooks.need_no_more(exe_ctx)
        else:
            stop_hooks.need(exe_ctx)
        return True


def watch(debugger: lldb.SBDebugger) -> None:
    """Register the provider with each target that needs it as soon as it has a program, before it has a process."""
    stop_hooks.add(debugger)
    event_thread.watch(debugger)
    _watched[debugger.GetID()] = debugger
    debugger.AddDestroyCallback(_leave)
    _listener().StartListeningForEventClass(debugger, *_EVENTS)


def _leave(debugger: int) -> None:
    """Handle no more events of a debugger, which is destroyed when this returns.

    At the end of its process, LLDB calls this with the lock of its list of debuggers, which the handling of an event
    may wait for: to report how far the symbols of a file are read, LLDB looks for the debugger that is to show it.
    """
    _watched.pop(debugger, None)
    if _handling.acquire(timeout=_PATIENCE):
        _handling.release()


def _is_watched(target: lldb.SBTarget) -> bool:
    """Return whether the target's debugger exists; to ask the target for it would abort LLDB if it does not."""
    return any(debugger.GetIndexOfTarget(target) != lldb.UINT32_MAX for debugger in list(_watched.values()))


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
        if listener.WaitForEvent(_MINUTE, event):
            # LLDB sends events of the targets that it has, also after their class is not listened to any more.
            if event.GetType() == _UNLOADED:
                new_modules.forget()
            elif SESSION.settings.mode != OFF:
                with _handling:
                    _handle(lldb.SBTarget.GetTargetFromEvent(event))
            event.Clear()  # it would keep the target alive
        event_thread.forget()


def _handle(target: lldb.SBTarget) -> None:
    if not _is_watched(target):
        return
    new_modules.prepare(target)
    # A command may have set mode off meanwhile, when there was no provider to remove yet.
    if SESSION.settings.mode == OFF and not target.GetProcess().IsValid():
        fit(target, has_frames=False)
