"""Waits for LLDB's event thread, which shows a stopped thread again when a frame provider is registered or removed.

:mod:`lldb_plugin.lifecycle.stack_changes` keeps these events from it where that is possible.  Elsewhere, it must not
show a thread while a command runs: LLDB 22.1.0 fetches frames without a lock, so two threads get them in disorder.  In
every version, a command that waits for the process can wait for the event thread while that thread waits for the
command.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Set
from itertools import count

import lldb

_THREADS = "/proc/self/task"
_EVENT_THREAD = "dbg.evt-handler"
"""LLDB's name of the thread."""
_PATIENCE = 2.0
"""Seconds to wait for the event thread, which may belong to another debugger of this LLDB."""
_SLEEP = 0.1
"""Seconds after which an event thread that sleeps has no event of this debugger."""
_NAP = 0.001
_KINDS = 32
"""Number of types of events that a broadcaster has: so many threads can wait at the same time."""


class EventThreads:
    """The event threads of the debuggers in this process.

    :param deciding: the threads that decide about frames at this moment; another thread waits for them.
    """

    def __init__(self, deciding: Set[int]) -> None:
        self._deciding = deciding
        self._marker = lldb.SBBroadcaster("sframe-unwind")
        """The sender of the plugin's events.  The event thread still uses it when an event has left the queue."""
        self._waits = count()

    def settle(self, debugger: lldb.SBDebugger) -> None:
        """Return when the event thread has handled everything that it has been told so far."""
        threads = _event_threads()
        if threading.get_native_id() in threads:
            _drop_stack_changes(debugger.GetListener())
        elif threads:
            self._await(debugger.GetListener(), threads)

    @staticmethod
    def is_current() -> bool:
        """Return whether this is an event thread."""
        return threading.get_native_id() in _event_threads()

    def _await(self, listener: lldb.SBListener, threads: set[int]) -> None:
        """Wait for the event thread, from another thread.

        Events are handled in order: when the plugin's marker event has been handled, so have all events before it.  If
        all event threads sleep meanwhile, they belong to other debuggers, or wait for this thread.
        """
        marker, kind = self._marker, 1 << next(self._waits) % _KINDS
        event = lldb.SBEvent()
        listener.StartListeningForEvents(marker, kind)
        marker.BroadcastEventByType(kind, False)
        started = worked = time.monotonic()
        while listener.PeekAtNextEventForBroadcasterWithType(marker, kind, event):
            now = time.monotonic()
            if self._deciding:
                started = worked = now
            elif any(map(_works, threads)):
                worked = now
            if now - started > _PATIENCE or now - worked > _SLEEP:
                listener.GetNextEventForBroadcasterWithType(marker, kind, event)
                break
            time.sleep(_NAP)
        listener.StopListeningForEvents(marker, kind)


def _event_threads() -> set[int]:
    """Return the system's ids of the event threads: a script that made its own debugger has none."""
    found = set()
    for number in os.listdir(_THREADS):
        with contextlib.suppress(OSError):  # the thread has ended
            if _read(f"{number}/comm").strip() == _EVENT_THREAD:
                found.add(int(number))
    return found


def _read(name: str) -> str:
    with open(f"{_THREADS}/{name}", encoding="utf-8") as file:
        return file.read()


def _works(thread: int) -> bool:
    """Return whether a thread of this process runs, or would if there were a processor for it."""
    try:
        state = _read(f"{thread}/stat").rpartition(") ")[2][:1]
    except OSError:  # it has ended
        return False
    return state != "S"


def _drop_stack_changes(listener: lldb.SBListener) -> None:
    """Remove the events that a registration has just sent, from the event thread itself."""
    event = lldb.SBEvent()
    while listener.PeekAtNextEvent(event) and _is_stack_change(event) and listener.GetNextEvent(event):
        pass


def _is_stack_change(event: lldb.SBEvent) -> bool:
    of_thread = event.GetBroadcasterClass() == lldb.SBThread.GetBroadcasterClassName()
    return bool(of_thread and event.GetType() == lldb.SBThread.eBroadcastBitStackChanged)
