"""Acquires LLDB's lock on a target with a time limit, because the holder may be waiting for this thread."""

from __future__ import annotations

import time

import lldb

_NAP = 0.0002


def acquire(mutex: lldb.SBMutex, seconds: float) -> bool:
    """Acquire the lock within some seconds; return whether that succeeded."""
    until = time.monotonic() + seconds
    while not mutex.try_lock():
        if time.monotonic() > until:
            return False
        time.sleep(_NAP)
    return True
