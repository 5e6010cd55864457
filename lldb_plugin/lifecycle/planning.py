"""Chooses the frames of a thread one by one, where the rules alone do not show that they are LLDB's own.

This is imported when the first stack needs it.  In most sessions, none does.
"""

from __future__ import annotations

import contextlib

import lldb

from lldb_plugin.frames.frame_ids import told_apart
from lldb_plugin.frames.frame_list import FrameList
from lldb_plugin.frames.frame_plan import FramePlan, Shown, plan
from lldb_plugin.frames.innermost import InnermostFrames
from lldb_plugin.frames.native import NativeStack
from lldb_plugin.frames.option_parser import OptionParser
from lldb_plugin.frames.scripted_frame import FrameMaker
from lldb_plugin.frames.strict_plan import NativeStackInPart, StacksDifferError, strict_plan
from lldb_plugin.interface.telling import Report
from lldb_plugin.process.inlining import Scopes
from lldb_plugin.process.process import Process
from lldb_plugin.version import TAKES_ALL_FRAMES
from sframe_unwind.debugger.settings import Settings
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind.walk import MAX_FRAMES

_MOST = 50_000
"""Maximum number of frames in an LLDB that takes all at each stop, unless it has as many itself: a stack overflow has
five times as many, for which LLDB takes five seconds."""


class Answers(NamedTuple):
    """The frames of a thread, some of which are not LLDB's own."""

    shown: FrameList[Shown]
    maker: FrameMaker
    should_wait: bool
    """Whether to give the frames later: LLDB may be in the middle of a step, which they would make end elsewhere."""


class Planning:
    """The choice of frames in all processes.

    :param innermost: the innermost frames of threads.
    :param report: shows one line to the user.
    """

    def __init__(self, innermost: InnermostFrames, report: Report) -> None:
        self._innermost = innermost
        self._report = report
        self._parser = OptionParser()

    def answers(self, process: Process, thread: lldb.SBThread, settings: Settings) -> Answers | None:
        """Return the frames of a thread; ``None``: they are exactly LLDB's own."""
        target = thread.GetProcess().GetTarget()
        native, planned = _planned(process, thread, settings, Scopes(target))
        by_sframe = planned.walked[0]
        cfa = by_sframe.cfa if by_sframe is not None else None
        is_mistaken = self._innermost.is_mistaken(thread, cfa, native.cfa(native.frames[0]))
        planned = told_apart(planned, native)
        if planned.is_native(native.count):
            return None
        if planned.is_cut:
            self._report(f"this LLDB takes long for deep stacks: bt ends after {_MOST:,} frames, 'sframe bt' does not")
        return Answers(planned.shown, FrameMaker(target, process.arch, self._parser), is_mistaken)


def _planned(
    process: Process, thread: lldb.SBThread, settings: Settings, scopes: Scopes
) -> tuple[NativeStack, FramePlan]:
    """Return LLDB's own stack of a thread, and the frames to show."""
    if settings.strict:
        in_part = NativeStackInPart(process, thread)
        with contextlib.suppress(StacksDifferError):
            return in_part, strict_plan(process, in_part, settings, scopes)
    native = NativeStack(process, thread)
    limit = _MOST if TAKES_ALL_FRAMES and native.count < _MOST else MAX_FRAMES
    return native, plan(process, native, settings, scopes, limit)
