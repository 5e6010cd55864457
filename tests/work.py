"""Limits on the work of a piece of code, which do not depend on the machine or its load."""

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
    """Check that the block executes no more lines of Python than a limit; end it when it exceeds the limit.

    Tracing makes the code some ten times slower, so inputs should be smaller than those of a measurement of time.

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
