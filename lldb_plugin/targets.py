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
_plugged: dict[int, Plugged] = {}


class Plugged:
    """A target that the provider is registered with."""

    def __init__(self, target: lldb.SBTarget, number: int) -> None:
        self.target = target
        self._number = number
        self._id: int | None = None

    def register(self) -> None:
        """Register, in place of an earlier registration.

        LLDB 23 wants the earlier one removed; LLDB 22 removes none by the number that it gave, but replaces it.  Each
        step makes LLDB's event thread ask for frames, and a step that meets it at that can wait for it for ever.
        """
        self._settle()
        if self._id is not None:
            self.target.RemoveScriptedFrameProvider(self._id)
            self._settle()
        arguments, error = lldb.SBStructuredData(), lldb.SBError()
        arguments.SetFromJSON(json.dumps({KEY: self._number}))
        self._id = self.target.RegisterScriptedFrameProvider(PROVIDER, arguments, error)
        self._settle()
        if not error.Success():
            SESSION.report(f"LLDB does not take the frame provider: {error.GetCString()}")

    def _settle(self) -> None:
        if self.target.GetProcess().IsValid():
            debugger = self.target.GetDebugger()
            events.drop_own(debugger) if events.on_event_thread() else events.settle(debugger)

    def forget_frames(self) -> None:
        """Make LLDB ask for all frames anew; the selected frame stays selected."""
        process = self.target.GetProcess()
        if process.GetState() != lldb.eStateStopped:
            return  # at the next stop it does
        thread = process.GetSelectedThread()
        index = thread.GetSelectedFrame().GetFrameID()
        if not flushing.forget_frames(self.target):
            self.register()
        fetch(thread)
        if 0 < index < thread.GetNumFrames():
            thread.SetSelectedFrame(index)


def plug_in(target: lldb.SBTarget) -> None:
    """Register the provider with a target that has it not."""
    if not target.IsValid():
        return
    with _lock:
        for number, known in list(_plugged.items()):
            if not known.target.IsValid():
                del _plugged[number]
        if any(known.target == target for known in _plugged.values()):
            return
        number = next(_numbers)
        _plugged[number] = plugged = Plugged(target, number)
    plugged.register()  # without the lock: LLDB may wait here for a lock of its own


def fetch(thread: lldb.SBThread) -> None:
    """Make LLDB take all frames at once.

    Asked by `bt` for one after the other, LLDB 23.1.0 counts those that it has each time.
    """
    if thread.IsValid() and SESSION.mode != OFF:
        thread.GetNumFrames()


def plugged_target(arguments: lldb.SBStructuredData) -> lldb.SBTarget | None:
    """Return the target that a provider was registered with, by the provider's arguments."""
    known = _plugged.get(arguments.GetValueForKey(KEY).GetUnsignedIntegerValue(0))
    return known.target if known else None


def forget_frames() -> None:
    """Make LLDB ask for all frames of all targets anew."""
    for known in list(_plugged.values()):
        if known.target.IsValid():
            known.forget_frames()
