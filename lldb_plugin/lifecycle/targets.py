"""The targets that the frame provider is registered with; LLDB registers it for one target at a time."""

from __future__ import annotations

import itertools
import sys
import threading
from typing import Callable

import lldb

from lldb_plugin.interface.lock import acquire
from lldb_plugin.interface.telling import Report
from lldb_plugin.lifecycle.event_thread import EventThreads
from lldb_plugin.lifecycle.returning import ReturnCheck
from lldb_plugin.lifecycle.session import Session
from lldb_plugin.lifecycle.stack_changes import StackChanges
from lldb_plugin.lifecycle.stop_hooks import StopHooks
from lldb_plugin.process.differences import Differences
from sframe_unwind.debugger.settings import OFF
from sframe_unwind.errors import SFrameError
from sframe_unwind.named_tuple import NamedTuple

_MODULE = "sframe_lldb"
"""The module in which LLDB looks for the provider's classes: it finds only modules that its user imported."""

_PATIENCE = 0.1
"""Seconds to wait for LLDB's lock on the target."""
_JUDGING = 1.0
"""Seconds in which the modules of a process are compared with their CFI before it gets the provider."""


class _Plugged(NamedTuple):
    """A target that has the provider."""

    target: lldb.SBTarget
    provider: str
    """The name of the provider's class, by which LLDB finds it."""
    identifier: int | None
    """LLDB's number of the provider; ``None`` while it is registered."""


class Targets:
    """The registrations of the provider, in the targets of all debuggers.

    :param provider_for: returns the provider's class for a target, with a number for its name.
    :param report: shows one line to the user.
    """

    def __init__(
        self,
        session: Session,
        differences: Differences,
        hooks: StopHooks,
        stack_changes: StackChanges,
        provider_for: Callable[[lldb.SBTarget, int], type],
        report: Report,
    ) -> None:
        self._session = session
        self._differences = differences
        self._hooks = hooks
        self._stack_changes = stack_changes
        self._provider_for = provider_for
        self._report = report
        self._event_threads = EventThreads(session.deciding)
        self._return_check = ReturnCheck()
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._plugged: dict[int, _Plugged] = {}

    def fit(self, target: lldb.SBTarget, has_frames: bool, at_rest: bool = True) -> None:
        """Register the provider with a target if SFrame may change one of its stacks; otherwise, remove it.

        A target without the provider costs nothing: each question to the provider takes some 70 microseconds, and LLDB
        asks several times for each stop.

        :param has_frames: whether the target has a process; otherwise, LLDB's event thread shows nothing, so there is
            no need to wait for it.
        :param at_rest: whether a stopped process stays stopped during this call.  A process that begins or loads a
            library can go on without LLDB's lock; its memory is then not read, and the decision is made by the files.
        """
        if not target.IsValid():
            return
        needed = self._needs_provider(target, at_rest)
        if needed and not self.is_plugged(target):
            self._plug_in(target, has_frames)
        elif not needed and self.is_plugged(target):
            self._unplug(target)

    def _plug_in(self, target: lldb.SBTarget, has_frames: bool) -> None:
        with self._lock:
            for number, known in list(self._plugged.items()):
                if not known.target.IsValid():
                    del self._plugged[number]
            if self.is_plugged(target):
                return
            number = next(self._numbers)
            self._plugged[number] = _Plugged(target, "", None)
        # Without the lock: LLDB may wait here for one of its own locks.
        self._hooks.add(target)
        self._return_check.watch(target.GetDebugger())
        if has_frames:
            self._event_threads.settle(target.GetDebugger())
        provider = self._provider_for(target, number)
        setattr(sys.modules[_MODULE], provider.__name__, provider)
        error = lldb.SBError()
        name = f"{_MODULE}.{provider.__name__}"
        with self._stack_changes.unheard(target):
            identifier = target.RegisterScriptedFrameProvider(name, lldb.SBStructuredData(), error)
        with self._lock:
            self._plugged[number] = _Plugged(target, provider.__name__, identifier)
        if has_frames:
            self._event_threads.settle(target.GetDebugger())
        if not error.Success():
            self._report(f"LLDB does not take the frame provider: {error.GetCString()}")

    def _needs_provider(self, target: lldb.SBTarget, at_rest: bool) -> bool:
        """Return whether SFrame may change a stack of a target, by the modules that it has now."""
        settings, process = self._session.settings, target.GetProcess()
        if settings.mode == OFF or self._session.leaves_frames_alone(process):
            return False
        mutex = target.GetAPIMutex()
        # Whoever holds the lock may be waiting for this stop.
        if at_rest and process.IsValid() and acquire(mutex, _PATIENCE):
            try:
                if process.GetState() == lldb.eStateStopped:
                    loaded = self._session.modules(process)
                    loaded.judge(*(() if self.is_plugged(target) else (_JUDGING,)))
                    return loaded.can_change_stacks(settings)
            except SFrameError:
                return False  # SFrame cannot unwind this target; the `sframe` commands say why
            finally:
                mutex.unlock()
        # Without a process, only the program is examined: LLDB may be making other modules, as from a core file.
        program = target.FindModule(target.GetExecutable())
        modules = target.module_iter() if process.IsValid() else filter(None, [program])
        return self._differences.can_change_stacks(target, modules, settings)

    def is_plugged(self, target: lldb.SBTarget) -> bool:
        """Return whether a target has the provider, or is about to get it."""
        return any(known.target == target for known in list(self._plugged.values()))

    def plugged(self) -> list[lldb.SBTarget]:
        """Return the targets that have the provider."""
        return [known.target for known in list(self._plugged.values()) if known.target.IsValid()]

    def _unplug(self, target: lldb.SBTarget) -> None:
        """Remove the provider from a target whose process does not run, unless LLDB would show threads again."""
        process = target.GetProcess()
        for known in list(self._plugged.values()):
            if known.target != target:
                continue
            if not process.IsValid():
                self._remove(known)
            elif process.GetState() == lldb.eStateStopped:
                self._event_threads.settle(target.GetDebugger())
                if not self._stack_changes.are_heard(target) or self._event_threads.is_current():
                    with self._stack_changes.unheard(target):
                        self._remove(known)
                self._event_threads.settle(target.GetDebugger())

    def _remove(self, known: _Plugged) -> None:
        with self._lock:
            numbers = [
                number for number, other in self._plugged.items() if other is known and known.identifier is not None
            ]
            for number in numbers:
                del self._plugged[number]
        if numbers and known.target.IsValid():
            known.target.RemoveScriptedFrameProvider(known.identifier)
            delattr(sys.modules[_MODULE], known.provider)
