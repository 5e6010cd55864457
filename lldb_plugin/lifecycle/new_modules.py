"""What new modules of a target need: the provider before there is a process, and at the next stop afterwards."""

from __future__ import annotations

import time

import lldb

from lldb_plugin.interface.lock import acquire
from lldb_plugin.interface.telling import tell
from lldb_plugin.lifecycle import commanding, shown_frames, stop_hooks
from lldb_plugin.lifecycle.sframe_files import concerns
from lldb_plugin.lifecycle.targets import fit, is_plugged
from lldb_plugin.process.differences import can_change_stacks
from lldb_plugin.session import SESSION
from lldb_plugin.version import CAN_RENEW

_PATIENCE = 0.05
"""Seconds to wait for LLDB's lock on a target."""
_HOOK_PATIENCE = 0.3
"""Seconds to wait for the stop-hook, which LLDB may have just started."""
_NAP = 0.01
_SECONDS = 2.0
"""Time limit for the comparison of files, while nobody waits."""
_BEGINNING = (lldb.eStateAttaching, lldb.eStateLaunching)
"""The states of a process of which LLDB has shown no frame."""


def prepare(target: lldb.SBTarget, is_new: bool) -> bool:
    """Register the provider before there is a process; then, arrange for the next stop what new modules need.

    Return whether all is done; otherwise, this is to be called again soon: the process may be about to stop, when the
    hooks of that stop have run already.

    :param is_new: the process of the target was not there before.  While a client launches it, the client has LLDB's
        lock on the target, so the state cannot be asked for.
    """
    if SESSION.is_off():
        return True
    if not is_plugged(target) and not can_change_stacks(target, _concerned(target), SESSION.settings, _SECONDS):
        return True
    process = target.GetProcess()
    if not process.IsValid():
        fit(target, has_frames=False)  # commands can have the lock one after the other until there is a process
        return True
    if is_plugged(target):
        return True
    state = _state(target)
    if CAN_RENEW and (state in _BEGINNING or (is_new and state is None)):
        fit(target, has_frames=False, at_rest=False)
        return True
    stop_hooks.add(target)
    stop_hooks.need(target)
    stop = _stop(target)
    if stop is None:
        return False
    return _late.fit(target, stop)


def _concerned(target: lldb.SBTarget) -> list[lldb.SBModule]:
    """Return the modules that SFrame can concern; the vDSO, for example, is no file, and is compared at a stop."""
    modules = list(target.module_iter())
    if not (SESSION.settings.strict or SESSION.settings.generate):
        return [module for module in modules if concerns(module.GetFileSpec().fullpath or "")]
    return modules


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


class _Late:
    """Stops that may have come before the stop-hook was enabled."""

    def __init__(self) -> None:
        self._told: tuple[int, int] | None = None
        """The process and the stop of the last message."""

    def fit(self, target: lldb.SBTarget, stop: int) -> bool:
        """Register the provider, and return whether it is; in LLDB 22, only a command or the hook can.

        LLDB 22 crashes if its frames change while its event thread prints one; before a command, that has ended.  If
        neither comes, say that the frames at this stop are LLDB's.

        :param stop: LLDB's number of the stop.
        """
        if commanding.is_this_thread():
            # LLDB 22 would take over the numbers of frames that it listed before the provider was there.
            with shown_frames.selections_kept(target):
                fit(target, has_frames=True)
                shown_frames.forget_frames()
            return True
        if CAN_RENEW:
            fit(target, has_frames=True, at_rest=False)
            return True
        this = target.GetProcess().GetUniqueID(), stop
        until = time.monotonic() + _HOOK_PATIENCE
        while not is_plugged(target) and this != self._told:
            if commanding.is_any_thread():
                return False
            if time.monotonic() > until:
                self._told = this
                tell("a library was loaded just before this stop: LLDB 22 shows its own frames until the next one")
            time.sleep(_NAP)
        return is_plugged(target)


_late = _Late()
