"""Keeps the selected frame when GDB forgets its frames, since GDB then selects the innermost one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice

import gdb


def chain(frame: gdb.Frame | None) -> Iterator[gdb.Frame]:
    """Yield the frames from one outward."""
    while frame is not None:
        yield frame
        frame = frame.older()


@contextmanager
def selection_kept() -> Iterator[None]:
    """Keep the selected frame over a block that makes GDB forget its frames.

    If the frame does not exist any more, because another unwinder gives other frames, that at its level is selected.
    """
    level = 0
    with suppress(gdb.error):  # there is no process, or it runs
        frame = gdb.selected_frame()
        level = frame.level()
    try:
        yield
    finally:
        if level:
            with suppress(gdb.error):  # GDB's own unwinder may not even reach the innermost frame
                found = frame if frame.is_valid() else next(islice(chain(gdb.newest_frame()), level, None), None)
                if found is not None:
                    found.select()


def forget_frames() -> None:
    """Make GDB unwind all frames anew."""
    with selection_kept():
        gdb.invalidate_cached_frames()
