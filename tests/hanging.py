"""Time limits of tests.  They only catch a hang, so they are minutes; what must be fast is measured by `make bench`.

The first import in a run measures how slow the machine is at the moment.  Workers, commands and debuggers inherit the
result in the environment.
"""

from __future__ import annotations

import os
import time

VARIABLE = "SFRAME_TEST_SLOWNESS"
"""The environment variable with the factor by which this machine is slower than the one of `_USUAL`."""
_USUAL = 0.2
"""Seconds that the fixed piece of work takes on an idle processor of 2020."""
_MOST = 4.0
"""The largest factor: a machine that is busy at the start may be idle later, and a hang is to end the same day."""


def _measured() -> float:
    """Return how many times longer than usual a fixed piece of work takes, from 1 to `_MOST`."""
    started = time.monotonic()
    mixed = 0
    for number in range(3_000_000):
        mixed ^= number
    return min(max(1.0, (time.monotonic() - started) / _USUAL), _MOST)


def hang_after(minutes: float) -> float:
    """Return a time limit in seconds: so many minutes, and in proportion more on a machine that is slow or busy."""
    if VARIABLE not in os.environ:
        os.environ[VARIABLE] = f"{_measured():.2f}"
    return 60 * minutes * float(os.environ[VARIABLE])


HANG = hang_after(5)
"""Time limit in seconds of whatever takes seconds: a command, a compiler, an answer of a debugger."""
WHOLE_TEST = hang_after(20)
"""Time limit in seconds of one test: more than the limits within it, whose messages say what hangs."""
