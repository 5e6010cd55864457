"""What makes a process faster that runs one command and ends."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

_COLLECT_AFTER = 100_000
"""New objects before the garbage collector looks for circles.  Decoding makes millions of objects, hardly any circle;
at Python's 700, the search takes a sixth of the time of ``verify``."""


@contextlib.contextmanager
def own_process() -> Iterator[None]:
    """Run one command, after which the process ends."""
    gc.set_threshold(_COLLECT_AFTER)
    try:
        yield
    finally:
        gc.freeze()  # at its end, Python looks for circles in everything once more, which takes 10 ms
