"""LLDB's event thread, which shows a stopped thread again whenever a frame provider is registered.

What it does then is no user's doing and must not meet a command: LLDB 22.1.0 fetches frames without a lock, so that two
threads at it get them in disorder, and in every version a command that waits for the process can wait for the event
thread, which waits for the command.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import lldb

from lldb_plugin.session import SESSION

_EVENT_THREAD = "dbg.evt-handler"
"""What LLDB calls the thread."""
_PATIENCE = 0.5
"""Seconds without a sign of life after which there is no event thread: a script that made its own debugger has none."""
_NAP = 0.001
_LIMIT = 60.0


def on_event_thread() -> bool:
    """Return whether it is LLDB's event thread that runs this."""
    try:
        name = Path(f"/proc/self/task/{threading.get_native_id()}/comm").read_text(encoding="utf-8")
    except OSError:
        return False
    return name.strip() == _EVENT_THREAD


def settle(debugger: lldb.SBDebugger) -> None:
    """Return when the event thread has nothing left to do of what it has been told until now.

    Events are taken one after the other: when it has taken a mark of ours, it is done with all before.
    """
    listener, broadcaster, event = debugger.GetListener(), lldb.SBBroadcaster("sframe-unwind"), lldb.SBEvent()
    listener.StartListeningForEvents(broadcaster, 1)
    broadcaster.BroadcastEventByType(1, False)
    started = quiet_since = time.monotonic()
    seen = SESSION.activity
    while listener.PeekAtNextEventForBroadcaster(broadcaster, event):
        now = time.monotonic()
        if SESSION.activity != seen or SESSION.making:
            seen, quiet_since = SESSION.activity, now
        if now - quiet_since > _PATIENCE or now - started > _LIMIT:
            listener.GetNextEventForBroadcaster(broadcaster, event)
            break
        time.sleep(_NAP)
    listener.StopListeningForEvents(broadcaster, 1)


def drop_own(debugger: lldb.SBDebugger) -> None:
    """Take back, on the event thread itself, what a registration just told it."""
    listener, event = debugger.GetListener(), lldb.SBEvent()
    while listener.PeekAtNextEvent(event) and _is_stack_change(event) and listener.GetNextEvent(event):
        pass


def _is_stack_change(event: lldb.SBEvent) -> bool:
    of_thread = event.GetBroadcasterClass() == lldb.SBThread.GetBroadcasterClassName()
    return bool(of_thread and event.GetType() == lldb.SBThread.eBroadcastBitStackChanged)
