"""The targets that the frame provider is registered with: LLDB takes it for one target at a time."""

from __future__ import annotations

import itertools
import json
import threading

import lldb

from lldb_plugin import events, flushing
from lldb_plugin.session import OFF, SESSION

PROVIDER = "sframe_lldb.SFrameFrameProvider"
"""Where LLDB looks for the class."""

KEY = "target"
"""Argument of the provider: its target's number here."""

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
        events.settle(target.GetDebugger())
    arguments, error = lldb.SBStructuredData(), lldb.SBError()
    arguments.SetFromJSON(json.dumps({KEY: number}))
    target.RegisterScriptedFrameProvider(PROVIDER, arguments, error)
    if has_frames:
        events.settle(target.GetDebugger())
    if not error.Success():
        SESSION.report(f"LLDB does not take the frame provider: {error.GetCString()}")


def plugged_target(arguments: lldb.SBStructuredData) -> lldb.SBTarget | None:
    """Return the target that a provider was registered with, by the provider's arguments."""
    return _plugged.get(arguments.GetValueForKey(KEY).GetUnsignedIntegerValue(0))


def fetch(thread: lldb.SBThread) -> None:
    """Make LLDB take all frames at once.

    Asked by `bt` for one after the other, LLDB 23.1.0 counts those that it has each time.
    """
    if thread.IsValid() and SESSION.mode != OFF:
        thread.GetNumFrames()


def forget_frames() -> None:
    """Make LLDB ask for all frames of all targets anew; the selected frame stays selected."""
    for target in list(_plugged.values()):
        if target.GetProcess().GetState() != lldb.eStateStopped:
            continue  # at the next stop it does
        thread = target.GetProcess().GetSelectedThread()
        index = thread.GetSelectedFrame().GetFrameID()
        if not flushing.forget_frames(target):
            SESSION.report("this LLDB keeps the frames that it has shown; the mode counts from the next stop on")
        fetch(thread)
        if 0 < index < thread.GetNumFrames():
            thread.SetSelectedFrame(index)
