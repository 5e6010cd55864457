"""LLDB's own callers of the frames of a thread, read from the innermost frame outward as far as they are asked for."""

from __future__ import annotations

import lldb

from lldb_plugin.frames.native_frames import NativeFrame, frames_from, known
from sframe_unwind.unwind.step import Caller
from sframe_unwind.unwind.walk import Registers


class NativeCallers:
    """LLDB's own frames of a thread.

    :param thread: shows LLDB's own frames, during the life of this object.
    """

    def __init__(self, thread: lldb.SBThread) -> None:
        self._thread = thread
        self._coming = frames_from(thread, 0)
        self._read: list[NativeFrame] = []

    def is_caller(self, level: int, frame: Registers, caller: Caller | None) -> bool:
        """Return whether LLDB has a frame at a level, and the same caller for it; ``None``: it has none."""
        own, outer = self._at(level), self._at(level + 1)
        if own is None or (own.pc, own.sp) != (frame.pc, frame.sp):
            return False
        if outer is None or caller is None:
            return outer is None and caller is None
        if (outer.pc, outer.sp) != (caller.pc, caller.sp):
            return False
        return known(self._thread.GetFrameAtIndex(outer.indexes[-1]).GetFP()) == caller.fp

    def knows_function(self, address: int) -> bool:
        """Return whether LLDB knows where the function at an address begins."""
        symbol = self._thread.GetProcess().GetTarget().ResolveLoadAddress(address).GetSymbol()
        return bool(symbol.IsValid() and not symbol.IsSynthetic())

    def _at(self, level: int) -> NativeFrame | None:
        """Return the frame at a level; frames that share their registers count once."""
        while len(self._read) <= level:
            frame = next(self._coming, None)
            if frame is None:
                return None
            self._read.append(frame)
        return self._read[level]
