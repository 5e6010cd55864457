"""Decides, per frame, whether LLDB shows its own frame or SFrame's."""

from __future__ import annotations

import functools
from typing import NamedTuple, Union

from lldb_plugin.frames.fallback import fallback
from lldb_plugin.frames.native import NativeStack
from lldb_plugin.frames.native_frames import NativeFrame
from lldb_plugin.process.inlining import Scope, Scopes
from lldb_plugin.process.process import Process
from sframe_unwind.debugger.settings import Settings
from sframe_unwind.memory import ReadAhead, WordReader
from sframe_unwind.unwind.other_stacks import OtherStacks
from sframe_unwind.unwind.walk import MAX_FRAMES, SFRAME, End, Frame, Walk


class Own(NamedTuple):
    """A frame of the walk that LLDB does not have, shown as one of the functions at its pc."""

    frame: Frame
    scope: Scope


Shown = Union[int, Own]
"""A frame that LLDB shows: the index of its own frame, or a frame that it does not have."""


class FramePlan(NamedTuple):
    """The frames for LLDB to show, by index."""

    shown: tuple[Shown, ...]
    walked: tuple[Frame | None, ...]
    """For each index, the corresponding frame of the walk; ``None``: only LLDB has one."""
    is_cut: bool = False
    """Whether the stack has more frames."""

    def is_native(self, count: int) -> bool:
        """Return whether these are exactly LLDB's own frames, given their number."""
        return self.shown == tuple(range(count))


def walk(process: Process, native: NativeStack, settings: Settings, limit: int = MAX_FRAMES) -> Walk:
    """Return the walk over a thread's stack, with LLDB's frames where SFrame has none or is not to be used.

    :param limit: maximum number of frames.
    """
    read_word = WordReader(ReadAhead(process.read), process.arch.byteorder)
    kernel = process.kernel_at(native.innermost.pc)
    left = process.modules.has_cfi if settings.leaves_cfi else None
    switches = kernel.leaves_stack if kernel is not None else None
    better = process.precedence.prefers_cfi if settings.decides else None
    return Walk(
        arch=process.arch,
        modules=process.modules,
        registers=native.innermost,
        read_word=read_word,
        read_register=native.read_register,
        fallback=fallback(process, native, read_word),
        pac_mask=process.pac_mask,
        limit=limit,
        skip=left or switches or better,
        other_stacks=OtherStacks(process.arch, process.read) if kernel is None else None,
    )


def plan(
    process: Process, native: NativeStack, settings: Settings, scopes: Scopes, limit: int = MAX_FRAMES
) -> FramePlan:
    """Choose LLDB's own frame wherever SFrame agrees with it on pc and SP, or has no frame.

    With ``settings.strict``: choose SFrame's frame wherever SFrame covers the pc, even if LLDB's is the same.

    The outermost frame is LLDB's own only if it has the same number in both stacks.  At the next stop, LLDB compares
    its frames with those of the stop before, from the outermost one inward until two differ, and keeps the old frames
    with their old numbers.  These would be wrong if a frame that only SFrame has came before them.

    :param limit: maximum number of frames of the walk; LLDB must not have as many.
    """
    shown: list[Shown] = []
    walked: list[Frame | None] = []
    last: NativeFrame | None = None
    is_code = functools.cache(process.is_executable)
    steps = walk(process, native, settings, limit)
    for frame in steps:
        same = _same(native, frame)
        if same is None and not is_code(frame.pc):
            break  # the pc is no return address: LLDB also ends its stack there
        last = same
        if last is None or (settings.strict and frame.level and frame.unwinder == SFRAME):
            own: list[Shown] = [Own(frame, scope) for scope in scopes.of(frame)]
            if last is not None:  # LLDB knows tail calls from the debug information
                own[:0] = last.indexes[: last.tail_calls]
            shown += own
            walked += [frame] * len(own)
        else:
            shown += last.indexes
            walked += [frame] * len(last.indexes)
    if last is not None and steps.end not in (End.OUTERMOST, End.PC_ZERO):
        for further in native.frames[native.frames.index(last) + 1 :]:  # the walk ended where LLDB continues
            shown += further.indexes
            walked += [None] * len(further.indexes)
    outermost = walked[-1] if walked else None
    if outermost is not None and shown[-1] != len(shown) - 1:
        shown[-1] = Own(outermost, scopes.of(outermost)[-1])
    return FramePlan(tuple(shown), tuple(walked), steps.end is End.LIMIT)


def _same(native: NativeStack, frame: Frame) -> NativeFrame | None:
    """Return the same frame of LLDB; ``None``: LLDB has no such frame.

    The innermost frame is always LLDB's own: its registers are the thread's, whichever unwinder is used.  LLDB decides
    by this frame where a step ends.

    A frame of LLDB with the pc and SP that SFrame gives is used even if LLDB computes another CFA for it: then the
    frame is right, and only its caller is wrong.  ``finish`` and ``next`` wait for the frame with the CFA that LLDB
    computed.  Before LLDB 24, a frame of a plugin has no CFA, so LLDB would stop at the first return to its pc, at any
    depth.
    """
    return native.find(frame.pc, frame.sp) if frame.level else native.frames[0]
