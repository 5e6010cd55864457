"""Keeps LLDB from showing each thread again when a frame provider is registered or removed.

LLDB then broadcasts that the stacks of the threads have changed, and its event thread shows them.  Only one listener
hears this kind of event of a debugger.  So the plugin listens in place of the event thread, and passes each event on to
it, except those that the plugin itself has caused.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import lldb

_CLASS = lldb.SBThread.GetBroadcasterClassName()
_KIND = lldb.SBThread.eBroadcastBitStackChanged
_FROM, _TO = 1, 2
"""The types of the markers between which events are dropped."""
_MINUTE = 60
_PATIENCE = 2.0
"""Seconds to wait until the events before a marker are handled."""


class _Relay:
    """Listens for changes of stacks in place of a debugger's listener, for the threads that are created from now on."""

    def __init__(self, debugger: lldb.SBDebugger) -> None:
        self._theirs = debugger.GetListener()
        self._ours = lldb.SBListener("sframe-unwind stacks")
        self._marker = lldb.SBBroadcaster("sframe-unwind")
        self._passed = threading.Event()
        self.earlier: set[int] = set()
        """Unique IDs of the processes that may have threads that were created before, which the debugger hears."""
        for index in range(debugger.GetNumTargets()):
            process = debugger.GetTargetAtIndex(index).GetProcess()
            if process.IsValid():
                self.earlier.add(process.GetUniqueID())
        self.is_needed = self._theirs.StopListeningForEventClass(debugger, _CLASS, _KIND)
        if self.is_needed:
            self._ours.StartListeningForEventClass(debugger, _CLASS, _KIND)
            self._ours.StartListeningForEvents(self._marker, _FROM | _TO)
            threading.Thread(target=self._relay, name="sframe-unwind-stacks", daemon=True).start()

    def _relay(self) -> None:
        drops = False
        while True:
            event = lldb.SBEvent()
            if not self._ours.WaitForEvent(_MINUTE, event):
                continue
            if event.BroadcasterMatchesRef(self._marker):
                drops = event.GetType() == _FROM
                self._passed.set()
            elif not drops:
                self._theirs.AddEvent(event)

    @contextlib.contextmanager
    def dropping(self) -> Iterator[None]:
        """Drop the events that are broadcast meanwhile."""
        self._marker.BroadcastEventByType(_FROM, False)
        try:
            yield
        finally:
            self._passed.clear()
            self._marker.BroadcastEventByType(_TO, False)
            self._passed.wait(_PATIENCE)


class StackChanges:
    """The changes of stacks in the processes of all debuggers."""

    def __init__(self) -> None:
        self._relays: dict[int, _Relay] = {}
        """By debugger."""

    def watch(self, debugger: lldb.SBDebugger) -> None:
        """Listen for the threads that processes of a debugger create from now on, which :meth:`unheard` needs."""
        if debugger.GetID() not in self._relays:
            self._relays[debugger.GetID()] = _Relay(debugger)

    def are_heard(self, target: lldb.SBTarget) -> bool:
        """Return whether LLDB would show the threads of a target's process again."""
        relay = self._relays.get(target.GetDebugger().GetID())
        return relay is None or (relay.is_needed and target.GetProcess().GetUniqueID() in relay.earlier)

    @contextlib.contextmanager
    def unheard(self, target: lldb.SBTarget) -> Iterator[None]:
        """Keep changes of stacks from the event thread; threads that came before :meth:`watch` are shown again."""
        relay = self._relays.get(target.GetDebugger().GetID())
        with contextlib.nullcontext() if relay is None or not relay.is_needed else relay.dropping():
            yield
