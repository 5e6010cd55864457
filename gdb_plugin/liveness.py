"""Whether all registers of a pending frame are live, so that its pc is no return address."""

from __future__ import annotations

import gdb


def is_live(frame: gdb.PendingFrame) -> bool:
    """Return whether only inlined functions, or a signal trampoline, lie inside the frame.

    GDB does not tell an unwinder.  The frames inside a pending one are complete and can be asked; the pending one
    itself must not be reached through them, as GDB would ask for its unwinder once more.
    """
    level = frame.level()
    live = True
    inner = gdb.newest_frame() if level else None
    while inner is not None:
        kind = inner.type()
        if kind != gdb.INLINE_FRAME:  # has the registers of the function that it is inlined in
            live = kind == gdb.SIGTRAMP_FRAME
        if inner.level() + 1 == level:
            break
        inner = inner.older()
    return live
