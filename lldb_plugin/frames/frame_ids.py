"""Keeps LLDB 22 from taking one frame of a script for another.

LLDB identifies a frame of a script by its function, and by a number that it has in place of a CFA.  LLDB 22 counts
these numbers from 0 again each time it takes further frames from the script.  A step that ends in a caller takes frames
0 and 1 first, and the others later.  So frames 1 and 2 get the same number if both are of scripts.
"""

from __future__ import annotations

from lldb_plugin.frames.frame_plan import FramePlan, Own
from lldb_plugin.frames.native import NativeStack
from lldb_plugin.version import NUMBERS_FRAMES_ANEW


def told_apart(planned: FramePlan, native: NativeStack) -> FramePlan:
    """Choose LLDB's own frame 1 if LLDB would take SFrame's frame 2 for frame 1, and has the same frame 1.

    In a recursion, it would show pc, line and variables of frame 1 also for frame 2, to everybody but `bt`.
    """
    if not NUMBERS_FRAMES_ANEW or len(planned.shown) < 3:
        return planned
    inner, outer, frame = planned.shown[1], planned.shown[2], planned.walked[1]
    if isinstance(inner, int) or isinstance(outer, int) or frame is None or not _are_of_one_function(inner, outer):
        return planned
    own = native.caller(native.frames[0])
    if own is None or own.indexes != (1,) or (own.pc, own.sp) != (frame.pc, frame.sp):
        return planned
    planned.shown[1] = 1
    return planned


def _are_of_one_function(one: Own, other: Own) -> bool:
    contexts = one.scope.context, other.scope.context
    functions = [(context.GetFunction(), context.GetSymbol()) for context in contexts]
    return bool(functions[0] == functions[1])
