"""Replaces frames that were left to LLDB because its lock on the target was not free, as soon as the lock is free.

A thread that holds the lock may be waiting for LLDB's list of frames, which the asking thread is making.  So the asking
thread must not wait for the lock, and the list gets LLDB's own frames.  They are replaced later by the stop-hook, or by
a thread that waits for the lock and holds no other.
"""

from __future__ import annotations

import sys
import threading
from typing import Callable

import lldb

from lldb_plugin.interface.lock import acquire
from sframe_unwind.named_tuple import NamedTuple

_SECONDS = 1.0
"""Seconds after which the user is told that the frames are still LLDB's."""

Renew = Callable[[list[lldb.SBThread]], None]


class _Left(NamedTuple):
    """The threads of a process whose frames were left to LLDB, and the function that replaces their frames."""

    renew: Renew
    threads: list[lldb.SBThread]


class Renewals:
    """The processes with frames that were left to LLDB."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left: dict[int, _Left] = {}
        """By the number of the process."""

    def later(self, target: lldb.SBTarget, thread: lldb.SBThread, renew: Renew, waits: bool) -> None:
        """Arrange that the frames of a thread are replaced if necessary; this waits for none of LLDB's locks.

        :param renew: called with all threads whose frames were left to LLDB, by a thread that holds the lock on the
            target.
        :param waits: whether a thread shall wait for the lock; otherwise, only the stop-hook calls ``renew``.
        """
        number = target.GetProcess().GetUniqueID()
        with self._lock:
            is_first = number not in self._left
            left = self._left.setdefault(number, _Left(renew, []))
            if thread not in left.threads:
                left.threads.append(thread)
        if is_first and waits:
            threading.Thread(target=self._wait, args=(target, number), name="sframe-unwind-renew", daemon=True).start()

    def done(self, target: lldb.SBTarget, thread: lldb.SBThread) -> None:
        """Record that LLDB asked again for the frames of a thread, and gets SFrame's now; this waits for no lock."""
        number = target.GetProcess().GetUniqueID()
        with self._lock:
            left = self._left.get(number)
            if left is not None and thread in left.threads:
                left.threads.remove(thread)

    def now(self, target: lldb.SBTarget) -> None:
        """Replace the frames that were left to LLDB in a stopped process, if the lock on the target is free."""
        if target.GetProcess().GetUniqueID() not in self._left:
            return
        mutex = target.GetAPIMutex()
        if mutex.try_lock():
            try:
                self._renew(target, target.GetProcess().GetUniqueID())
            finally:
                mutex.unlock()

    def _wait(self, target: lldb.SBTarget, number: int) -> None:
        mutex = target.GetAPIMutex()
        if not acquire(mutex, _SECONDS):
            if number in self._left:
                print(
                    "sframe: LLDB is busy; the frames that it shows at this stop are its own for now", file=sys.stderr
                )
            mutex.lock()
        try:
            if target.GetProcess().GetUniqueID() == number:
                self._renew(target, number)
        finally:
            mutex.unlock()

    def _renew(self, target: lldb.SBTarget, number: int) -> None:
        with self._lock:
            left = self._left.pop(number, None)
        if left is not None and target.GetProcess().GetState() == lldb.eStateStopped:
            left.renew([thread for thread in left.threads if thread.IsValid()])
