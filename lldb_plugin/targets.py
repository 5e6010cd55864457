"""The targets that the frame provider is registered with; LLDB registers it for one target at a time."""

from __future__ import annotations

import itertools
import sys
import threading
from typing import NamedTuple

import lldb

from lldb_plugin import event_thread, invalidate
from lldb_plugin.lock import acquire
from lldb_plugin.session import SESSION
from sframe_unwind.debugger.settings import OFF
from sframe_unwind.errors import SFrameError

_MODULE = "sframe_lldb"
"""The module in which LLDB looks for the provider's classes: it finds only modules that its user imported."""

_PATIENCE = 0.1
"""Seconds to wait for LLDB's lock on the target."""
_JUDGING = 1.0
"""Seconds in which the modules of a process are compared with their CFI before it gets the provider."""

_lock = threading.Lock()
_numbers = itertools.count(1)
_plugged: dict[int, _Plugged] = {}


class _Plugged(NamedTuple):
    """A target that has the provider."""

    target: lldb.SBTarget
    provider: str
    """The name of the provider's class, by which LLDB finds it."""
    identifier: int | None
    """LLDB's number of the provider; ``None`` while it is registered."""


def plug_in(target: lldb.SBTarget, has_frames: bool) -> None:
    """Register the provider with a target that does not have it, unless the mode is ``off``.

    LLDB shows the stopped threads of a process again when it gets the provider.  So a process gets none while its
    modules are known to give LLDB's own frames; the stop-hook asks again at each stop.

    :param has_frames: the target has a process; otherwise, LLDB's event thread shows nothing, and is not waited for.
    """
    if not target.IsValid() or SESSION.settings.mode == OFF:
        return
    if has_frames and not is_plugged(target) and _needs_no_provider(target):
        return
    with _lock:
        for number, known in list(_plugged.items()):
            if not known.target.IsValid():
                del _plugged[number]
        if is_plugged(target):
            return
        number = next(_numbers)
        _plugged[number] = _Plugged(target, "", None)
    # Without the lock: LLDB may wait here for one of its own locks.
    if has_frames:
        event_thread.settle(target.GetDebugger())
    from lldb_plugin.provider import for_target  # its base classes exist since LLDB 22

    provider = for_target(target, number)
    setattr(sys.modules[_MODULE], provider.__name__, provider)
    error = lldb.SBError()
    name = f"{_MODULE}.{provider.__name__}"
    identifier = target.RegisterScriptedFrameProvider(name, lldb.SBStructuredData(), error)
    with _lock:
        _plugged[number] = _Plugged(target, provider.__name__, identifier)
    if has_frames:
        event_thread.settle(target.GetDebugger())
    if not error.Success():
        SESSION.report(f"LLDB does not take the frame provider: {error.GetCString()}")


def _needs_no_provider(target: lldb.SBTarget) -> bool:
    """Return whether SFrame certainly changes no stack of a stopped process, by the modules that it has now."""
    process = target.GetProcess()
    if SESSION.leaves_frames_alone(process):
        return True
    mutex = target.GetAPIMutex()
    # Whoever holds the lock may be waiting for this stop.
    if not acquire(mutex, _PATIENCE):
        return False
    try:
        if process.GetState() != lldb.eStateStopped:
            return False
        modules = SESSION.modules(process)
        modules.judge(_JUDGING)
        return not modules.can_change_stacks(SESSION.settings)
    except SFrameError:
        return False  # the provider says why
    finally:
        mutex.unlock()


def is_plugged(target: lldb.SBTarget) -> bool:
    """Return whether a target has the provider, or is about to get it."""
    return any(known.target == target for known in list(_plugged.values()))


def plugged() -> list[lldb.SBTarget]:
    """Return the targets that have the provider."""
    return [known.target for known in list(_plugged.values()) if known.target.IsValid()]


def unplug_all() -> None:
    """Remove the provider from each target without a process.

    For a target with a process, even one that has exited, LLDB's event thread would show the threads again.
    """
    for known in list(_plugged.values()):
        if not known.target.GetProcess().IsValid():
            _unplug(known)


def unplug_at_stop(target: lldb.SBTarget) -> None:
    """Remove the provider from a stopped target, on LLDB's event thread: it then shows nothing again."""
    for known in list(_plugged.values()):
        if known.target == target and event_thread.is_current():
            event_thread.settle(target.GetDebugger())
            _unplug(known)
            event_thread.settle(target.GetDebugger())


def _unplug(known: _Plugged) -> None:
    with _lock:
        numbers = [number for number, other in _plugged.items() if other is known and known.identifier is not None]
        for number in numbers:
            del _plugged[number]
    if numbers and known.target.IsValid():
        known.target.RemoveScriptedFrameProvider(known.identifier)
        delattr(sys.modules[_MODULE], known.provider)


def fetch(thread: lldb.SBThread) -> None:
    """Make LLDB take all of SFrame's frames at once.

    If `bt` asks for one after the other, LLDB 23.1.0 counts its frames each time.
    """
    if thread.IsValid() and SESSION.replaced(thread):
        thread.GetNumFrames()


def forget_frames() -> None:
    """Make LLDB ask again for all frames of all targets; the selected frame stays selected."""
    for target in [known.target for known in _plugged.values()]:
        if target.GetProcess().GetState() != lldb.eStateStopped:
            continue  # LLDB does so at the next stop
        thread = target.GetProcess().GetSelectedThread()
        index = thread.GetSelectedFrame().GetFrameID() if thread.IsValid() else 0
        if not invalidate.forget_frames(target):
            SESSION.report("this LLDB keeps the frames that it has shown; the mode counts from the next stop on")
        fetch(thread)
        if 0 < index < thread.GetNumFrames():
            thread.SetSelectedFrame(index)
