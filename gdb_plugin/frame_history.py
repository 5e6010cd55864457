"""Whether a pending frame was interrupted, so that its pc is the next instruction and no return address.

That is so for the innermost frame, for one that a signal interrupted, and for one in which GDB called a function.  GDB
knows, but does not tell an unwinder, and the frame inside the pending one must not be asked for: GDB may not have
finished it.  So this keeps what is known of the frame that GDB asked for last.  It asks from the inside out; frames of
inlined functions, tail calls and calls by GDB are not asked for.

What is kept may be from before the process ran: GDB drops its frames at each internal stop of a command, and says so
to nobody.  So it is only believed where the pending frame is what the last one returns to, in its registers or in
memory as it is now.
"""

from __future__ import annotations

from typing import Callable, Optional

LastFrame = tuple[int, int, Optional[tuple[int, int]], bool]
"""The frame that GDB asked for last: level; pc; pc and SP of its caller, ``None`` where GDB's own unwinder finds them;
whether its caller was interrupted by a signal.  A plain tuple, as one is made for each frame of a backtrace."""

_NONE: LastFrame = (1 << 62, 0, None, False)


class FrameHistory:
    """The frame that GDB asked for last.

    :param is_signal_frame: whether a frame that was left to GDB is a signal frame, by its pc.
    :param returns_to: ``(pc of a frame that was left to GDB, pc, SP)``: whether that frame returns to another one.
    """

    def __init__(self, is_signal_frame: Callable[[int], bool], returns_to: Callable[[int, int, int], bool]) -> None:
        self.last = _NONE
        self._is_signal_frame = is_signal_frame
        self._returns_to = returns_to

    def is_interrupted(self, last: LastFrame, level: int, pc: int, sp: int) -> bool:
        """Return whether the pending frame was interrupted.

        :param last: what was asked for before it.
        :param level: of the pending frame, as pc and SP.
        """
        last_level, last_pc, caller, signal = last
        if level <= last_level:
            return True  # GDB began anew: only inlined functions are further in
        if caller is not None:
            # Where the caller is another one, GDB began anew, or called a function from the pending frame.
            return signal or caller != (pc, sp)
        return self._is_signal_frame(last_pc) or not self._returns_to(last_pc, pc, sp)
