"""Tells whether a pending frame was interrupted: its pc is then the next instruction, not a return address.

Three kinds of frames are interrupted: the innermost frame, a frame that a signal interrupted, and a frame in which GDB
called a function.  GDB does not tell an unwinder that a frame is one of these.  The next inner frame would show it, but
the unwinder must not ask GDB for that frame, which GDB may not have finished.  So this class keeps the frame that GDB
asked for last.  GDB asks for frames from the innermost outward, except for those of inlined functions, of tail calls
and of calls by GDB.

The kept frame may be from before the process ran: GDB drops its frames at each internal stop of a command, without
notice.  So it is used only if it returns to the pending frame, according to its registers or to the present memory.
"""

from __future__ import annotations

from typing import Callable, Optional

LastFrame = tuple[int, int, Optional[tuple[int, int]], bool]
"""The frame that GDB asked for last: level; pc; pc and SP of its caller (``None``: GDB's own unwinder finds them);
whether a signal interrupted its caller.  It is a plain tuple, because one is made for each frame of a backtrace."""

_NONE: LastFrame = (1 << 62, 0, None, False)


class FrameHistory:
    """The frame that GDB asked for last.

    :param is_signal_frame: whether a frame that was left to GDB is a signal frame, by its pc.
    :param returns_to: ``(pc of a frame that was left to GDB, pc, SP)``: returns whether that frame returns to another
        one.
    """

    def __init__(self, is_signal_frame: Callable[[int], bool], returns_to: Callable[[int, int, int], bool]) -> None:
        self.last = _NONE
        self._is_signal_frame = is_signal_frame
        self._returns_to = returns_to

    def is_interrupted(self, last: LastFrame, level: int, pc: int, sp: int) -> bool:
        """Return whether the pending frame was interrupted.

        :param last: the frame that GDB asked for before this one.
        :param level: level of the pending frame; ``pc`` and ``sp`` are also those of that frame.
        """
        last_level, last_pc, caller, signal = last
        if level <= last_level:
            return True  # GDB began a new chain at this frame: only inlined functions are further in
        if caller is not None:
            # If the caller is another frame, GDB began a new chain, or called a function from the pending frame.
            return signal or caller != (pc, sp)
        return self._is_signal_frame(last_pc) or not self._returns_to(last_pc, pc, sp)
