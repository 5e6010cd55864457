"""Work that takes more processor time than a limit permits."""

from __future__ import annotations

import time

LIMIT = 0.05
"""Seconds of processor time."""


def compute() -> None:
    """Use twice the limit."""
    until = time.thread_time() + 2 * LIMIT
    while time.thread_time() < until:
        pass
