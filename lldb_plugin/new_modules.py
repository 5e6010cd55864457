"""What new modules of a target need: the provider before there is a process, and at the next stop afterwards."""

from __future__ import annotations

import time

import lldb

from lldb_plugin import stop_hooks
from lldb_plugin.differences import can_change_stacks
from lldb_plugin.lock import acquire
from lldb_plugin.session import SESSION, tell
from lldb_plugin.targets import fit, is_plugged
from lldb_plugin.version import CAN_RENEW

_PATIENCE = 0.05
"""Seconds to wait for LLDB's lock on a target."""
_HOOK_PATIENCE = 0.3
"""Seconds to wait for the stop-hook, which LLDB may have just started."""
_NAP = 0.01


def forget() -> None:
    """Examine all modules anew the next time: one has gone, and others have moved in LLDB's list."""
    _examined.forget()


def prepare(target: lldb.SBTarget) -> None:
    """Register the provider before there is a process; then, arrange for the next stop what new modules need."""
    process = target.GetProcess()
    if not process.IsValid():
        fit(target, has_frames=False)  # commands can have the lock one after the other until there is a process
        return
    is_known = SESSION.knows(process)  # otherwise, all of its modules are examined at its first stop
    if is_plugged(target) or (is_known and not _examined.can_change_stacks(target)):
        return
    stop_hooks.need(lldb.SBExecutionContext(target))
    stop = _stop(target) if is_known else None
    if stop is not None:
        _late.fit(target, stop)


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

    def fit(self, target: lldb.SBTarget, stop: int) -> None:
        """Register the provider; in LLDB 22, which crashes if its frames change now, say so, unless the hook does it.

        :param stop: LLDB's number of the stop.
        """
        if CAN_RENEW:
            fit(target, has_frames=True)
            return
        this = target.GetProcess().GetUniqueID(), stop
        until = time.monotonic() + _HOOK_PATIENCE
        while not is_plugged(target) and this != self._told:
            if time.monotonic() > until:
                self._told = this
                tell("a library was loaded just before this stop: LLDB 22 shows its own frames until the next one")
            time.sleep(_NAP)


_late = _Late()


class _Examined:
    """The modules that were found not to change stacks, in the target whose modules came last.

    LLDB puts new modules at the end of its list, and a program can load very many, one by one.
    """

    def __init__(self) -> None:
        self._of: tuple[object, ...] = ()
        self._count = 0

    def forget(self) -> None:
        """See :func:`forget`."""
        self._count = 0

    def can_change_stacks(self, target: lldb.SBTarget) -> bool:
        """Return whether a module can change a stack; see :func:`lldb_plugin.differences.can_change_stacks`."""
        program = target.GetModuleAtIndex(0)  # changes with `exec`, and LLDB sends no event for what has gone
        numbers = target.GetGloballyUniqueID(), target.GetProcess().GetUniqueID()
        of = *numbers, program.GetFileSpec().fullpath, program.GetUUIDString(), SESSION.settings
        count = target.GetNumModules()
        if of != self._of or count < self._count:
            self._of, self._count = of, 0
        modules = map(target.GetModuleAtIndex, range(self._count, count))
        if can_change_stacks(target, modules, SESSION.settings):
            return True
        self._count = count
        return False


_examined = _Examined()
