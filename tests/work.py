"""Limits on the work of a piece of code, which are the same on every machine, however busy."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class TooMuchWorkError(AssertionError):
    """The code executed more lines than it may."""


@contextmanager
def at_most_lines(limit: int) -> Iterator[None]:
    """Check that the block executes no more lines of Python than a limit, and end it where it does.

    Tracing makes the code some ten times slower, so inputs are smaller than where the time is measured.

    :raises TooMuchWorkError: it executes more.
    """
    left = limit

    def trace(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal left
        if event == "line":
            left -= 1
            if left < 0:
                raise TooMuchWorkError(f"more than {limit:,} lines are executed")
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
