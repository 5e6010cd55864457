"""Registers the provider with targets that are created later; LLDB announces new targets only as events."""

from __future__ import annotations

import functools
import threading
import time
from typing import Any

import lldb

from lldb_plugin import event_thread, renewal, stop_hooks
from lldb_plugin.differences import can_change_stacks
from lldb_plugin.lock import acquire
from lldb_plugin.session import SESSION, tell
from lldb_plugin.shown_frames import fetch
from lldb_plugin.targets import fit, is_plugged, plugged
from lldb_plugin.version import CAN_RENEW
from sframe_unwind.debugger.settings import OFF

_MINUTE = 60
_PATIENCE = 0.05
"""Seconds to wait for LLDB's lock on a target."""
_HOOK_PATIENCE = 0.3
"""Seconds to wait for the stop-hook, which LLDB may have just started."""
_NAP = 0.01
_UNLOADED = lldb.SBTarget.eBroadcastBitModulesUnloaded
_watched: set[int] = set()
"""LLDB's numbers of the debuggers whose events are handled."""
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
    _watched.add(debugger.GetID())
    debugger.AddDestroyCallback(_leave)
    _listener().StartListeningForEventClass(debugger, *_EVENTS)


def _leave(debugger: int) -> None:
    """Handle no more events of a debugger, which is destroyed when this returns."""
    with _handling:
        _watched.discard(debugger)


def _is_watched(target: lldb.SBTarget) -> bool:
    """Return whether the target's debugger exists; to ask the target for it would abort LLDB if it does not."""
    for number in list(_watched):
        debugger = lldb.SBDebugger.FindDebuggerWithID(number)
        if debugger.IsValid() and debugger.GetIndexOfTarget(target) != lldb.UINT32_MAX:
            return True
    return False


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
                _examined.forget()
            elif SESSION.settings.mode != OFF:
                with _handling:
                    _handle(lldb.SBTarget.GetTargetFromEvent(event))
            event.Clear()  # it would keep the target alive
        event_thread.forget()


def _handle(target: lldb.SBTarget) -> None:
    if not _is_watched(target):
        return
    _prepare(target)
    # A command may have set mode off meanwhile, when there was no provider to remove yet.
    if SESSION.settings.mode == OFF and not target.GetProcess().IsValid():
        fit(target, has_frames=False)


def _prepare(target: lldb.SBTarget) -> None:
    """Register the provider before there is a process; then, arrange for the next stop what new modules need."""
    process = target.GetProcess()
    if not process.IsValid():
        fit(target, has_frames=False)  # commands can have the lock one after the other until there is a process
        return
    is_known = SESSION.knows(process)  # otherwise, all of its modules are examined at its first stop
    if is_plugged(target) or (is_known and not _examined.can_change_stacks(target)):
        return
    stop_hooks.need(lldb.SBExecutionContext(target))
    stop = _stop(target) if is_known else None
    if stop is not None:
        _late.fit(target, stop)


def _stop(target: lldb.SBTarget) -> int | None:
    """Return LLDB's number of the stop of a process.

    ``None``: it is not stopped, or somebody has the lock, as while a script lets it run.
    """
    mutex = target.GetAPIMutex()
    if not acquire(mutex, _PATIENCE):
        return None
    try:
        process = target.GetProcess()
        return int(process.GetStopID()) if process.GetState() == lldb.eStateStopped else None
    finally:
        mutex.unlock()


class _Late:
    """Stops that may have come before the stop-hook was enabled."""

    def __init__(self) -> None:
        self._told: tuple[int, int] | None = None
        """The process and the stop of the last message."""

    def fit(self, target: lldb.SBTarget, stop: int) -> None:
        """Register the provider; in LLDB 22, which crashes if its frames change now, say so, unless the hook does it.

        :param stop: LLDB's number of the stop.
        """
        if CAN_RENEW:
            fit(target, has_frames=True)
            return
        this = target.GetProcess().GetUniqueID(), stop
        until = time.monotonic() + _HOOK_PATIENCE
        while not is_plugged(target) and this != self._told:
            if time.monotonic() > until:
                self._told = this
                tell("a library was loaded just before this stop: LLDB 22 shows its own frames until the next one")
            time.sleep(_NAP)


_late = _Late()


class _Examined:
    """The modules that were found not to change stacks, in the target whose modules came last.

    LLDB puts new modules at the end of its list, and a program can load very many, one by one.
    """

    def __init__(self) -> None:
        self._of: tuple[object, ...] = ()
        self._count = 0

    def forget(self) -> None:
        """Examine all modules anew the next time: one has gone, and others have moved in the list."""
        self._count = 0

    def can_change_stacks(self, target: lldb.SBTarget) -> bool:
        """Return whether a module can change a stack; see :func:`lldb_plugin.differences.can_change_stacks`."""
        program = target.GetModuleAtIndex(0)  # changes with `exec`, and LLDB sends no event for what has gone
        numbers = target.GetGloballyUniqueID(), target.GetProcess().GetUniqueID()
        of = *numbers, program.GetFileSpec().fullpath, program.GetUUIDString(), SESSION.settings
        count = target.GetNumModules()
        if of != self._of or count < self._count:
            self._of, self._count = of, 0
        modules = map(target.GetModuleAtIndex, range(self._count, count))
        if can_change_stacks(target, modules, SESSION.settings):
            return True
        self._count = count
        return False


_examined = _Examined()
