"""Tells whether a thread runs from the user's view, in which GDB's internal stops do not count."""

from __future__ import annotations

from typing import Any

import gdb

ThreadId = tuple[int, ...]


class RunState:
    """The threads that a command lets run.

    GDB's own state does not help: it marks a thread as stopped before it reads the thread's stack.
    """

    def __init__(self) -> None:
        self._running: set[ThreadId | None] = set()
        """``None``: all threads."""
        self._calls = 0

    def begin(self, runs: bool) -> None:
        """Begin to follow GDB's events.

        :param runs: the selected thread may be running, from the user's view.
        """
        self._running, self._calls = set(), 0
        thread = gdb.selected_thread()
        if runs and thread is not None and thread.is_running():
            self._running.add(tuple(thread.ptid) if gdb.parameter("non-stop") else None)

    def continued(self, event: Any) -> None:
        """Take account of ``gdb.events.cont``, which comes once for each command that lets the inferior run."""
        self._running.add(thread_of(event))

    def called(self, event: object) -> None:
        """Take account of the start or the end of a function that GDB calls; at the end, GDB announces no stop.

        GDB also calls functions while a command lets the inferior run, for the condition of a breakpoint.
        """
        self._calls = max(self._calls + (1 if isinstance(event, gdb.InferiorCallPreEvent) else -1), 0)

    def stopped(self, event: Any) -> None:
        """Take account of ``gdb.events.stop``."""
        thread = thread_of(event)
        self._running = self._running - {thread, None} if thread is not None else set()

    def is_running(self) -> bool:
        """Return whether the selected thread runs."""
        thread = gdb.selected_thread()
        return bool(self._calls) or None in self._running or (thread is not None and thread.ptid in self._running)


def thread_of(event: Any) -> ThreadId | None:
    """Return the ID of the thread that runs or has stopped; ``None``, outside non-stop mode: all threads."""
    thread = event.inferior_thread
    return None if thread is None else tuple(thread.ptid)
