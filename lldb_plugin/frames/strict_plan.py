"""Decides which frames LLDB shows with `strict`, without reading those of its own that SFrame covers.

Reading a frame takes 10 microseconds, which for a deep stack is a quarter of the time that LLDB takes for all.
"""

from __future__ import annotations

import functools

import lldb

from lldb_plugin.frames.frame_plan import FramePlan, Own, Shown, walk
from lldb_plugin.frames.native import NativeStack
from lldb_plugin.frames.native_frames import NativeFrame, frames_from
from lldb_plugin.process.inlining import Scopes
from lldb_plugin.process.process import Process
from sframe_unwind.debugger.settings import Settings
from sframe_unwind.unwind.walk import SFRAME, Frame


class StacksDifferError(Exception):
    """LLDB's stack is not the one that SFrame gives; all of LLDB's frames must be read to find the difference."""


class NativeStackInPart(NativeStack):
    """The frames of a thread by LLDB's own unwinder, as long as SFrame's have the same indexes.

    Of :attr:`frames`, it has only the innermost one.

    :param thread: shows LLDB's own frames, during the life of this object.
    """

    def __init__(self, process: Process, thread: lldb.SBThread) -> None:
        super().__init__(process, thread, 1)
        self._next = 0
        self._group = functools.cache(self._read)
        self._count = int(thread.GetNumFrames())

    @property
    def count(self) -> int:
        """The number of frames that LLDB shows; it can be 0 while LLDB steps."""
        return self._count

    def reach(self, index: int) -> None:
        """Set LLDB's index of the frame that is found next."""
        self._next = index

    def find(self, pc: int, sp: int) -> NativeFrame:
        """Return the frame at the index that is reached.

        :raises StacksDifferError: it has another pc or SP, or there is none.
        """
        frame = self._group(self._next)
        if frame is None or (frame.pc, frame.sp) != (pc, sp):
            raise StacksDifferError
        return frame

    def caller(self, frame: NativeFrame) -> NativeFrame | None:
        """Return the next frame further out; ``None``: there is none."""
        return self._group(frame.indexes[-1] + 1)

    def _read(self, index: int) -> NativeFrame | None:
        return next(frames_from(self._listed, index), None)


def strict_plan(process: Process, native: NativeStackInPart, settings: Settings, scopes: Scopes) -> FramePlan:
    """Choose SFrame's frame wherever SFrame covers the pc, else LLDB's own.

    See :func:`lldb_plugin.frames.frame_plan.plan`.

    :raises StacksDifferError: LLDB has other frames, or more because it knows tail calls from the debug information.
    """
    shown: list[Shown] = []
    walked: list[Frame | None] = []
    for frame in walk(process, native, settings):
        if frame.level and frame.unwinder == SFRAME:  # most frames: these lines determine the cost
            for scope in scopes.of(frame):
                shown.append(Own(frame, scope))
                walked.append(frame)
        else:
            own = native.find(frame.pc, frame.sp) if frame.level else native.frames[0]
            shown += own.indexes
            walked += [frame] * len(own.indexes)
        native.reach(len(shown))
    if len(shown) != native.count:
        raise StacksDifferError
    return FramePlan.of(shown, walked)
