"""Targets that come to be after the plugin was loaded: LLDB tells nobody of them but who listens to its events."""

from __future__ import annotations

import functools
import threading
from typing import Any

import lldb

from lldb_plugin import renewal
from lldb_plugin.lock import acquire
from lldb_plugin.session import SESSION
from lldb_plugin.targets import fetch, plug_in, unplug_at_stop
from sframe_unwind.debugger.settings import OFF

_FOREVER = (1 << 32) - 1
_PATIENCE = 5.0
"""Seconds to wait for LLDB's lock on a target; whoever holds it may be starting a process."""


class SFrameStopHook:
    """Plugs the provider into a target at its first stop, where nothing did so before.

    A stop-hook of the dummy target is copied to each later target: one that a process came with, as by attaching to it.
    """

    def __init__(self, target: lldb.SBTarget, extra_args: Any, internal_dict: dict[str, Any]) -> None:
        pass

    def handle_stop(self, exe_ctx: lldb.SBExecutionContext, stream: lldb.SBStream) -> bool:
        """Plug in, and stay stopped; in mode ``off``, take the provider back."""
        if SESSION.settings.mode == OFF:
            unplug_at_stop(exe_ctx.GetTarget())
            return True
        plug_in(exe_ctx.GetTarget(), has_frames=True)
        renewal.now(exe_ctx.GetTarget())
        fetch(exe_ctx.GetThread())
        return True


def watch(debugger: lldb.SBDebugger) -> None:
    """Plug the provider into each target as soon as it has a program, before it has a process.

    Then nothing is shown twice; see :mod:`lldb_plugin.event_thread`.
    """
    kind, bit = lldb.SBTarget.GetBroadcasterClassName(), lldb.SBTarget.eBroadcastBitModulesLoaded
    _listener().StartListeningForEventClass(debugger, kind, bit)


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


def _plug_in_early(target: lldb.SBTarget) -> None:
    """Plug in while there is no process; a target that has one is the stop-hook's."""
    mutex = target.GetAPIMutex()
    if target.GetProcess().IsValid() or not acquire(mutex, _PATIENCE):
        return
    try:
        if not target.GetProcess().IsValid():
            plug_in(target, has_frames=False)  # nobody may be waited for with the lock held
    finally:
        mutex.unlock()
