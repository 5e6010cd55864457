"""Prepares targets for new modules: registers the provider before there is a process, or else at the next stop."""

from __future__ import annotations

import time

import lldb

from lldb_plugin.interface.lock import acquire
from lldb_plugin.interface.telling import tell
from lldb_plugin.lifecycle.commanding import Commanding
from lldb_plugin.lifecycle.session import Session
from lldb_plugin.lifecycle.sframe_files import concerns
from lldb_plugin.lifecycle.shown_frames import ShownFrames
from lldb_plugin.lifecycle.stop_hooks import StopHooks
from lldb_plugin.lifecycle.targets import Targets
from lldb_plugin.process.differences import Differences
from lldb_plugin.version import CAN_RENEW

_PATIENCE = 0.05
"""Seconds to wait for LLDB's lock on a target."""
_HOOK_PATIENCE = 0.3
"""Seconds to wait for the stop-hook, which LLDB may have just started."""
_NAP = 0.01
_SECONDS = 2.0
"""Time limit for the comparison of files, while nobody waits."""
_BEGINNING = (lldb.eStateAttaching, lldb.eStateLaunching)
"""The states of a process of which LLDB has not shown a frame yet."""


class NewModules:
    """Prepares targets for modules that SFrame concerns."""

    def __init__(
        self,
        session: Session,
        differences: Differences,
        targets: Targets,
        hooks: StopHooks,
        shown: ShownFrames,
        commanding: Commanding,
    ) -> None:
        self._session = session
        self._differences = differences
        self._targets = targets
        self._hooks = hooks
        self._shown = shown
        self._commanding = commanding
        self._told: tuple[int, int] | None = None
        """The process and the stop of the last message about a stop that may have come before the hook was enabled."""

    def prepare(self, target: lldb.SBTarget, is_new: bool) -> bool:
        """Register the provider before there is a process; then, arrange for the next stop what new modules need.

        Return whether all is done; otherwise, this is to be called again soon: the process may be about to stop, when
        the hooks of that stop have run already.

        :param is_new: the process of the target was not there before.  While a client launches it, the client has
            LLDB's lock on the target, so the state cannot be asked for.
        """
        if self._session.is_off():
            return True
        if not self._targets.is_plugged(target) and not self._can_change_stacks(target):
            return True
        process = target.GetProcess()
        if not process.IsValid():
            # Commands can have the lock one after the other until there is a process.
            self._targets.fit(target, has_frames=False)
            return True
        if self._targets.is_plugged(target):
            return True
        state = _state(target)
        if CAN_RENEW and (state in _BEGINNING or (is_new and state is None)):
            self._targets.fit(target, has_frames=False, at_rest=False)
            return True
        self._hooks.add(target)
        self._hooks.need(target)
        stop = _stop(target)
        if stop is None:
            return False
        return self._fit_late(target, stop)

    def _fit_late(self, target: lldb.SBTarget, stop: int) -> bool:
        """Register the provider, and return whether it is; in LLDB 22, only a command or the hook can.

        LLDB 22 crashes if its frames change while its event thread prints one, which it does no more when a command or
        the hook runs.  If neither comes, one line tells the user that the frames at this stop are LLDB's.

        :param stop: LLDB's number of the stop.
        """
        if self._commanding.is_this_thread():
            # LLDB 22 would take over the numbers of frames that it listed before the provider was there.
            with self._shown.selections_kept(target):
                self._targets.fit(target, has_frames=True)
                self._shown.forget_frames()
            return True
        if CAN_RENEW:
            self._targets.fit(target, has_frames=True, at_rest=False)
            return True
        this = target.GetProcess().GetUniqueID(), stop
        until = time.monotonic() + _HOOK_PATIENCE
        while not self._targets.is_plugged(target) and this != self._told:
            if self._commanding.is_any_thread():
                return False
            if time.monotonic() > until:
                self._told = this
                tell("a library was loaded just before this stop: LLDB 22 shows its own frames until the next one")
            time.sleep(_NAP)
        return self._targets.is_plugged(target)

    def _can_change_stacks(self, target: lldb.SBTarget) -> bool:
        """Return whether SFrame can change a stack of a target.

        The vDSO, for example, is no file, and is compared at a stop.
        """
        settings = self._session.settings
        modules = list(target.module_iter())
        if not settings.concerns_all:
            modules = [module for module in modules if concerns(module.GetFileSpec().fullpath or "")]
        return self._differences.can_change_stacks(target, modules, settings, _SECONDS)


def _state(target: lldb.SBTarget) -> int | None:
    """Return the state of a target's process; ``None``: somebody has the lock."""
    mutex = target.GetAPIMutex()
    if not acquire(mutex, _PATIENCE):
        return None
    try:
        return int(target.GetProcess().GetState())
    finally:
        mutex.unlock()


def _stop(target: lldb.SBTarget) -> int | None:
    """Return LLDB's number of the stop of a process.

    ``None``: it is not stopped, or somebody has the lock, as while a script lets it run.
    """
    mutex = target.GetAPIMutex()
    if not acquire(mutex, _PATIENCE):
        return None
    try:
        process = target.GetProcess()
        return int(process.GetStopID()) if process.GetState() == lldb.eStateStopped else None
    finally:
        mutex.unlock()
