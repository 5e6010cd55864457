"""Limits of processor time: the load of the machine must not decide what a debugger shows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class ProcessorTime:
    """Some processor time, which pieces of work use up.

    :param seconds: the time for all pieces of work together.
    """

    def __init__(self, seconds: float) -> None:
        self._left = seconds

    @property
    def is_used_up(self) -> bool:
        """Whether nothing is left."""
        return self._left <= 0

    @contextmanager
    def used(self) -> Iterator[None]:
        """Use up the processor time that this thread takes meanwhile."""
        begun = time.thread_time()
        try:
            yield
        finally:
            self._left -= time.thread_time() - begun
