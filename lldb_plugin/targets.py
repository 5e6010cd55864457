"""The targets that the frame provider is registered with; LLDB registers it for one target at a time."""

from __future__ import annotations

import itertools
import sys
import threading

import lldb

from lldb_plugin import event_thread, invalidate
from lldb_plugin.session import SESSION

_MODULE = "sframe_lldb"
"""Where LLDB looks for the provider's classes: it knows the modules that its user imported."""

_lock = threading.Lock()
_numbers = itertools.count(1)
_plugged: dict[int, lldb.SBTarget] = {}


def plug_in(target: lldb.SBTarget, has_frames: bool) -> None:
    """Register the provider with a target that has it not.

    :param has_frames: the target has a process; else LLDB's event thread has nothing to show, and is not waited for.
    """
    if not target.IsValid():
        return
    with _lock:
        for number, known in list(_plugged.items()):
            if not known.IsValid():
                del _plugged[number]
        if target in _plugged.values():
            return
        number = next(_numbers)
        _plugged[number] = target
    # Without the lock: LLDB may wait here for a lock of its own.
    if has_frames:
        event_thread.settle(target.GetDebugger())
    from lldb_plugin.provider import for_target  # what it is made of exists from LLDB 22 on

    provider = for_target(target, number)
    setattr(sys.modules[_MODULE], provider.__name__, provider)
    error = lldb.SBError()
    target.RegisterScriptedFrameProvider(f"{_MODULE}.{provider.__name__}", lldb.SBStructuredData(), error)
    if has_frames:
        event_thread.settle(target.GetDebugger())
    if not error.Success():
        SESSION.report(f"LLDB does not take the frame provider: {error.GetCString()}")


def fetch(thread: lldb.SBThread) -> None:
    """Make LLDB take all of SFrame's frames at once.

    Asked by `bt` for one after the other, LLDB 23.1.0 counts those that it has each time.
    """
    if thread.IsValid() and SESSION.replaced(thread):
        thread.GetNumFrames()


def forget_frames() -> None:
    """Make LLDB ask for all frames of all targets anew; the selected frame stays selected."""
    for target in list(_plugged.values()):
        if target.GetProcess().GetState() != lldb.eStateStopped:
            continue  # at the next stop it does
        thread = target.GetProcess().GetSelectedThread()
        index = thread.GetSelectedFrame().GetFrameID() if thread.IsValid() else 0
        if not invalidate.forget_frames(target):
            SESSION.report("this LLDB keeps the frames that it has shown; the mode counts from the next stop on")
        fetch(thread)
        if 0 < index < thread.GetNumFrames():
            thread.SetSelectedFrame(index)
