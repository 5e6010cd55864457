"""A progress bar on standard error, if that is a terminal."""

from __future__ import annotations

import sys
import time

_WIDTH = 30
_ERASE = "\r\033[K"
_PATIENCE = 0.5
"""Seconds that the work may take before the bar appears."""
_PAUSE = 0.1
"""Seconds between two updates of the bar."""


class Progress:
    """The state of the work and its duration.  Call :meth:`clear` before anything else is printed."""

    def __init__(self) -> None:
        self._shown = ""
        self._started = time.monotonic()
        self._next = self._started + _PATIENCE if sys.stderr.isatty() else float("inf")
        self._done = self._total = 0
        self._what = self._more = ""

    def update(self, done: int, total: int, what: str = "", more: str = "") -> None:
        """Record how much is done.

        :param total: 0: not known.
        :param what: name of the counted items.
        :param more: text after the numbers.
        """
        self._done, self._total, self._what, self._more = done, total, what, more
        self.tick()

    def tick(self) -> None:
        """Show the recorded state, if it is time to; call this often."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _PAUSE
        of = f"/{self._total}" if self._total else ""
        text = f"{self._done}{of}{self._what}, {now - self._started:.0f} s{self._more}"
        if self._total:
            filled = "#" * (_WIDTH * self._done // self._total)
            text = f"[{filled:<{_WIDTH}}] {text}"
        if text != self._shown:
            self._shown = text
            print(_ERASE + text, end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Remove the bar from the terminal until the next update."""
        if self._shown:
            self._shown = ""
            print(_ERASE, end="", file=sys.stderr, flush=True)
