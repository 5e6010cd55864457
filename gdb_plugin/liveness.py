"""Whether all registers of a pending frame are live, so that its pc is no return address.

That is so for the innermost frame and for the one that a signal interrupted.  GDB does not tell an unwinder, and the
frame inside the pending one cannot simply be asked: the identity of an inlined function's frame is computed from the
pending one, and asking for it meanwhile ends GDB with an assertion.  So notes are kept of the frames that GDB has
asked for, which it does from the inside out.
"""

from __future__ import annotations

import gdb

_RESUMES = ("cont", "exited", "inferior_call", "memory_changed", "register_changed")
"""After these GDB asks for all frames anew.  A stop is not among them: its frames are asked for before it is told."""


class Chain:
    """The frames of the selected thread, as far as GDB has asked for them since it last ran."""

    def __init__(self) -> None:
        self._thread: object = self  # no thread
        self._callers: dict[tuple[int, int], bool] = {}
        self._declined: set[int] = set()
        self._innermost: tuple[int, int] | None = None
        self._innermost_level = 0
        for name in _RESUMES:
            getattr(gdb.events, name).connect(self.forget)

    def forget(self, event: object = None) -> None:
        """Start over: the inferior may have run, or the mode changed."""
        self._thread = self

    def follow(self) -> None:
        """Start over where another thread is selected than before."""
        thread = gdb.selected_thread()
        if thread is not self._thread:
            self._thread = thread
            self._clear()

    def _clear(self) -> None:
        self._callers.clear()
        self._declined.clear()
        self._innermost = None

    def enter(self, frame: gdb.PendingFrame, pc: int, sp: int) -> None:
        """Start over where the levels are no longer those of the notes.

        A ``step`` into an inlined function only shows one frame more: all levels change, and nothing has run.
        """
        if self._innermost is None:
            self._innermost, self._innermost_level = (pc, sp), frame.level()
        elif self._innermost == (pc, sp) and self._innermost_level != frame.level():
            self._clear()
            self._innermost, self._innermost_level = (pc, sp), frame.level()

    def note_claimed(self, caller_pc: int, caller_sp: int, signal: bool) -> None:
        """Note that a frame was claimed.

        :param signal: it is a signal frame, so that its caller's registers are live.
        """
        self._callers[caller_pc, caller_sp] = signal

    def note_declined(self, frame: gdb.PendingFrame) -> None:
        """Note that a frame was left to GDB."""
        self._declined.add(frame.level())

    def is_interrupted(self, frame: gdb.PendingFrame, pc: int, sp: int) -> bool:
        """Return whether only inlined functions, or a signal trampoline, lie inside the pending frame."""
        level = frame.level()
        if level == 0:
            return True
        caller = self._callers.get((pc, sp))
        if caller is not None:
            return caller
        # Nobody here unwound to this frame, so the one inside it is GDB's; if there is none, the frame is innermost.
        inside = max((number for number in self._declined if number < level), default=None)
        return inside is None or _is_signal_frame(inside)


def _is_signal_frame(level: int) -> bool:
    """Look at a frame that is complete, and so are all inside it."""
    frame = gdb.newest_frame()
    while frame is not None and frame.level() < level:
        frame = frame.older()
    return frame is not None and bool(frame.type() == gdb.SIGTRAMP_FRAME)
