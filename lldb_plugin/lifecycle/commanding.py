"""Keeps the threads that are about to run a command that shows frames or lets a process run.

Such a command waits until the plugin has prepared SFrame's frames."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Commanding:
    """The threads that are about to run such a command."""

    def __init__(self) -> None:
        self._waiting: list[int] = []
        """The threads, by number; there is one for each debugger at most."""

    @contextmanager
    def about_to_show_frames(self) -> Iterator[None]:
        """Within the block, count this thread as one that is about to run such a command."""
        self._waiting.append(threading.get_ident())
        try:
            yield
        finally:
            self._waiting.remove(threading.get_ident())

    def is_this_thread(self) -> bool:
        """Return whether this thread is such a thread."""
        return threading.get_ident() in self._waiting

    def is_any_thread(self) -> bool:
        """Return whether any thread is such a thread."""
        return bool(self._waiting)
