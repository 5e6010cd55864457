"""The targets that the frame provider is registered with; LLDB registers it for one target at a time."""

from __future__ import annotations

import itertools
import sys
import threading
from typing import NamedTuple

import lldb

from lldb_plugin.interface.lock import acquire
from lldb_plugin.interface.telling import report
from lldb_plugin.lifecycle import event_thread, returning, stack_changes, stop_hooks
from lldb_plugin.process.differences import can_change_stacks
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


def fit(target: lldb.SBTarget, has_frames: bool, at_rest: bool = True) -> None:
    """Register the provider with a target if SFrame may change one of its stacks; otherwise, remove it.

    A target without the provider costs nothing: each question to the provider takes some 70 microseconds, and LLDB asks
    several times for each stop.

    :param has_frames: the target has a process; otherwise, LLDB's event thread shows nothing, and is not waited for.
    :param at_rest: the process stays stopped meanwhile, if it is.  A process that begins, or loads a library, goes on
        without LLDB's lock: what its memory has is then not known, and the files alone count.
    """
    if not target.IsValid():
        return
    needed = _needs_provider(target, at_rest)
    if needed and not is_plugged(target):
        _plug_in(target, has_frames)
    elif not needed and is_plugged(target):
        _unplug(target)


def _plug_in(target: lldb.SBTarget, has_frames: bool) -> None:
    with _lock:
        for number, known in list(_plugged.items()):
            if not known.target.IsValid():
                del _plugged[number]
        if is_plugged(target):
            return
        number = next(_numbers)
        _plugged[number] = _Plugged(target, "", None)
    # Without the lock: LLDB may wait here for one of its own locks.
    stop_hooks.add(target)
    returning.watch(target.GetDebugger())
    if has_frames:
        event_thread.settle(target.GetDebugger())
    from lldb_plugin.lifecycle.provider import for_target  # its base classes exist since LLDB 22

    provider = for_target(target, number)
    setattr(sys.modules[_MODULE], provider.__name__, provider)
    error = lldb.SBError()
    name = f"{_MODULE}.{provider.__name__}"
    with stack_changes.unheard(target):
        identifier = target.RegisterScriptedFrameProvider(name, lldb.SBStructuredData(), error)
    with _lock:
        _plugged[number] = _Plugged(target, provider.__name__, identifier)
    if has_frames:
        event_thread.settle(target.GetDebugger())
    if not error.Success():
        report(f"LLDB does not take the frame provider: {error.GetCString()}")


def _needs_provider(target: lldb.SBTarget, at_rest: bool) -> bool:
    """Return whether SFrame may change a stack of a target, by the modules that it has now."""
    settings, process = SESSION.settings, target.GetProcess()
    if settings.mode == OFF or SESSION.leaves_frames_alone(process):
        return False
    mutex = target.GetAPIMutex()
    # Whoever holds the lock may be waiting for this stop.
    if at_rest and process.IsValid() and acquire(mutex, _PATIENCE):
        try:
            if process.GetState() == lldb.eStateStopped:
                modules = SESSION.modules(process)
                modules.judge(*(() if is_plugged(target) else (_JUDGING,)))
                return modules.can_change_stacks(settings)
        except SFrameError:
            return False  # SFrame cannot unwind this target; the `sframe` commands say why
        finally:
            mutex.unlock()
    # Without a process, only the program is examined: LLDB may be making other modules, as from a core file.
    program = target.FindModule(target.GetExecutable())
    return can_change_stacks(target, target.module_iter() if process.IsValid() else filter(None, [program]), settings)


def is_plugged(target: lldb.SBTarget) -> bool:
    """Return whether a target has the provider, or is about to get it."""
    return any(known.target == target for known in list(_plugged.values()))


def plugged() -> list[lldb.SBTarget]:
    """Return the targets that have the provider."""
    return [known.target for known in list(_plugged.values()) if known.target.IsValid()]


def _unplug(target: lldb.SBTarget) -> None:
    """Remove the provider from a target whose process does not run, unless LLDB would show threads again."""
    process = target.GetProcess()
    for known in list(_plugged.values()):
        if known.target != target:
            continue
        if not process.IsValid():
            _remove(known)
        elif process.GetState() == lldb.eStateStopped:
            event_thread.settle(target.GetDebugger())
            if not stack_changes.are_heard(target) or event_thread.is_current():
                with stack_changes.unheard(target):
                    _remove(known)
            event_thread.settle(target.GetDebugger())


def _remove(known: _Plugged) -> None:
    with _lock:
        numbers = [number for number, other in _plugged.items() if other is known and known.identifier is not None]
        for number in numbers:
            del _plugged[number]
    if numbers and known.target.IsValid():
        known.target.RemoveScriptedFrameProvider(known.identifier)
        delattr(sys.modules[_MODULE], known.provider)
