"""LLDB's lock on a target, taken without waiting inside LLDB: who holds it may be waiting for who wants it here."""

from __future__ import annotations

import time

import lldb

_NAP = 0.0002


def acquire(mutex: lldb.SBMutex, seconds: float) -> bool:
    """Take the lock if it can be had within some seconds; return whether it was."""
    until = time.monotonic() + seconds
    while not mutex.try_lock():
        if time.monotonic() > until:
            return False
        time.sleep(_NAP)
    return True
