"""LLDB's event thread, which shows a stopped thread again when a frame provider is registered or removed.

So the thread is kept from hearing of that (:func:`unheard`).  Where that is not possible, what it shows must not
coincide with a command: LLDB 22.1.0 fetches frames without a lock, so two threads get them in disorder.  In every
version, a command that waits for the process can wait for the event thread while that thread waits for the command.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import lldb

from lldb_plugin.interpreter import OwnInterpreter
from lldb_plugin.lock import acquire
from lldb_plugin.session import SESSION

_EVENT_THREAD = "dbg.evt-handler"
"""LLDB's name of the thread."""
_PATIENCE = 2.0
"""Seconds to wait for the event thread, which may belong to another debugger of this LLDB."""
_SLEEP = 0.1
"""Seconds after which an event thread that sleeps has no event of this debugger."""
_NAP = 0.001
_LOCK_PATIENCE = 0.1
"""Seconds to wait for LLDB's lock on a target."""

_interpreter = OwnInterpreter()
_lock = threading.Lock()
"""Held while events of selections are read."""


def watch(debugger: lldb.SBDebugger) -> None:
    """Make :func:`unheard` possible for the threads that processes of a debugger create from now on."""
    of_threads = lldb.SBThread.GetBroadcasterClassName()
    _selections().StartListeningForEventClass(debugger, of_threads, lldb.SBThread.eBroadcastBitSelectedFrameChanged)


@contextlib.contextmanager
def unheard(target: lldb.SBTarget) -> Iterator[bool]:
    """Keep changes of stacks from the debugger's event thread; a thread that came before :func:`watch` is shown again.

    Yield whether there is no such thread.
    """
    changes, listener = lldb.SBThread.eBroadcastBitStackChanged, target.GetDebugger().GetListener()
    # An event keeps its thread alive, which sends events itself.
    selections, are_all = _select(target)
    heard = [event for event in selections if listener.StopListeningForEvents(event.GetBroadcaster(), changes)]
    try:
        yield are_all
    finally:
        for event in heard:
            listener.StartListeningForEvents(event.GetBroadcaster(), changes)


def forget() -> None:
    """Drop the events of frames that the user has selected."""
    with _lock:
        list(_heard())


@functools.cache
def _selections() -> lldb.SBListener:
    return lldb.SBListener("sframe-unwind selections")


def _select(target: lldb.SBTarget) -> tuple[list[lldb.SBEvent], bool]:
    """Select the selected frame of each thread of a stopped process again; return the events, and whether all came.

    The interface has what sends the events of a thread only in an event, and of all that causes one, only the selection
    of a frame changes nothing.  The lock is held, because :class:`lldb.SBProcess` would wait for it while the process
    cannot change its state: a command that ends the process has the lock and waits for the change.
    """
    mutex = target.GetAPIMutex()
    if not acquire(mutex, _LOCK_PATIENCE):
        return [], False
    try:
        with _lock:
            list(_heard())
            for thread in target.GetProcess():
                frame = thread.GetSelectedFrame()
                number = frame.GetFrameID() if frame.IsValid() else 0
                _interpreter.run(f"frame select {number}", lldb.SBExecutionContext(thread))
            events = list(_heard())
        return events, len(events) >= target.GetProcess().GetNumThreads()
    finally:
        mutex.unlock()


def _heard() -> Iterator[lldb.SBEvent]:
    event = lldb.SBEvent()
    while _selections().GetNextEvent(event):
        yield event
        event = lldb.SBEvent()


def settle(debugger: lldb.SBDebugger) -> None:
    """Return when the event thread has handled everything that it has been told so far."""
    threads = _event_threads()
    if threading.get_native_id() in threads:
        _drop_stack_changes(debugger.GetListener())
    elif threads:
        _await(debugger.GetListener(), threads)


def is_current() -> bool:
    """Return whether this is an event thread."""
    return threading.get_native_id() in _event_threads()


def _event_threads() -> set[int]:
    """Return the system's ids of the event threads: a script that made its own debugger has none."""
    found = set()
    for name in Path("/proc/self/task").glob("*/comm"):
        with contextlib.suppress(OSError):  # the thread has ended
            if name.read_text(encoding="utf-8").strip() == _EVENT_THREAD:
                found.add(int(name.parent.name))
    return found


def _await(listener: lldb.SBListener, threads: set[int]) -> None:
    """Wait for the event thread, from another thread.

    Events are handled in order: when the plugin's marker event has been handled, so have all events before it.  If all
    event threads sleep meanwhile, they belong to other debuggers, or wait for this thread.
    """
    broadcaster, event = lldb.SBBroadcaster("sframe-unwind"), lldb.SBEvent()
    listener.StartListeningForEvents(broadcaster, 1)
    broadcaster.BroadcastEventByType(1, False)
    started = worked = time.monotonic()
    while listener.PeekAtNextEventForBroadcaster(broadcaster, event):
        now = time.monotonic()
        if SESSION.deciding:
            started = worked = now
        elif any(map(_works, threads)):
            worked = now
        if now - started > _PATIENCE or now - worked > _SLEEP:
            listener.GetNextEventForBroadcaster(broadcaster, event)
            break
        time.sleep(_NAP)
    listener.StopListeningForEvents(broadcaster, 1)


def _works(thread: int) -> bool:
    """Return whether a thread of this process runs, or would if there were a processor for it."""
    try:
        state = Path(f"/proc/self/task/{thread}/stat").read_text(encoding="utf-8").rpartition(") ")[2][:1]
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
