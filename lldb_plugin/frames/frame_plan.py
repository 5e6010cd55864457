"""Decides, per frame, whether LLDB shows its own frame or SFrame's."""

from __future__ import annotations

import functools
from typing import Union

from lldb_plugin.frames.fallback import fallback
from lldb_plugin.frames.frame_list import FrameList
from lldb_plugin.frames.native import NativeStack
from lldb_plugin.frames.native_frames import NativeFrame
from lldb_plugin.process.inlining import Scope, Scopes
from lldb_plugin.process.process import Process
from sframe_unwind.address import lookup_address
from sframe_unwind.debugger.settings import Settings
from sframe_unwind.memory import ReadAhead, WordReader
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind.modules import Found
from sframe_unwind.unwind.other_stacks import OtherStacks
from sframe_unwind.unwind.recursion import RECENT, Repetition, WalkedFrame, further_out, repetition
from sframe_unwind.unwind.step import Caller
from sframe_unwind.unwind.walk import MAX_FRAMES, SFRAME, End, Frame, Registers, Walk
from sframe_unwind.unwind_rule import UnwindRule

_FEW = 1_000
"""Maximum number of LLDB's own frames with which frames of a recursion can be those of SFrame alone."""


class Own(NamedTuple):
    """A frame of the walk that LLDB does not have, shown as one of the functions at its pc."""

    frame: Frame
    scope: Scope


Shown = Union[int, Own]
"""A frame that LLDB shows: the index of its own frame, or a frame that it does not have."""


class FramePlan(NamedTuple):
    """The frames for LLDB to show, by index."""

    shown: FrameList[Shown]
    walked: FrameList[Frame | None]
    """For each index, the corresponding frame of the walk; ``None``: only LLDB has one."""
    is_cut: bool = False
    """Whether the stack has more frames."""

    @classmethod
    def of(cls, shown: list[Shown], walked: list[Frame | None]) -> FramePlan:
        """Return the plan with some frames."""
        plan = cls(FrameList(_moved), FrameList(_moved_frame))
        plan.shown.extend(shown)
        plan.walked.extend(walked)
        return plan

    def is_native(self, count: int) -> bool:
        """Return whether these are exactly LLDB's own frames, given their number."""
        return self.shown.plain() == list(range(count))


def walk(
    process: Process,
    native: NativeStack,
    settings: Settings,
    limit: int = MAX_FRAMES,
    begin: Registers | None = None,
    level: int = 0,
) -> Walk:
    """Return the walk over a thread's stack, with LLDB's frames where SFrame has none or is not to be used.

    :param limit: maximum number of frames.
    :param begin: the registers of the first frame; ``None``: it is the innermost one.
    :param level: the level of the first frame; if it is not 0, a call of the frame inside it has led there.
    """
    read_word = WordReader(ReadAhead(process.read), process.arch.byteorder)
    kernel = process.kernel_at(native.innermost.pc)
    left = process.native_cfi.covers if settings.leaves_cfi else None
    switches = kernel.leaves_stack if kernel is not None else None
    better = process.precedence.prefers_cfi if settings.decides else None
    return Walk(
        arch=process.arch,
        modules=process.modules,
        registers=begin or native.innermost,
        read_word=read_word,
        read_register=None if level else native.read_register,
        fallback=fallback(process, native, read_word),
        pac_mask=process.pac_mask,
        limit=limit,
        skip=left or switches or better,
        interrupted=not level,
        other_stacks=OtherStacks(process.arch, process.read) if kernel is None else None,
        level=level,
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
    return _Planning(process, native, settings, scopes, limit).planned()


class _Planning:
    """The choice of the frames of one thread; see :func:`plan`."""

    def __init__(self, process: Process, native: NativeStack, settings: Settings, scopes: Scopes, limit: int) -> None:
        self._process = process
        self._native = native
        self._settings = settings
        self._scopes = scopes
        self._limit = limit
        self._is_code = functools.cache(process.is_executable)
        self._shown: FrameList[Shown] = FrameList(_moved)
        self._walked: FrameList[Frame | None] = FrameList(_moved_frame)
        self._last: NativeFrame | None = None
        """LLDB's own frame, if the walk's last one is the same."""
        self._recent: list[Frame] = []
        """The last frames, as long as only SFrame has them."""
        self._may_skip = len(native.frames) < _FEW
        self._is_cut = False
        """Whether the limit is reached within a recursion."""

    def planned(self) -> FramePlan:
        """Return the frames to show."""
        native, shown, walked = self._native, self._shown, self._walked
        begin: Registers | None = native.innermost
        level = 0
        while begin is not None:
            steps = walk(self._process, native, self._settings, limit=self._limit, begin=begin, level=level)
            begin, level = self._follow(steps)
        last = self._last
        if last is not None and steps.end not in (End.OUTERMOST, End.PC_ZERO):
            for further in native.frames[native.frames.index(last) + 1 :]:  # the walk ended where LLDB continues
                shown.extend(further.indexes)
                walked.extend([None] * len(further.indexes))
        outermost = walked[-1] if len(walked) else None
        if outermost is not None and isinstance(shown[-1], int) and shown[-1] != len(shown) - 1:
            shown[len(shown) - 1] = Own(outermost, self._scopes.of(outermost)[-1])
        return FramePlan(shown, walked, self._is_cut or steps.end is End.LIMIT)

    def _follow(self, steps: Walk) -> tuple[Registers | None, int]:
        """Add the frames of a walk, up to a recursion, whose frames are added at once.

        :return: the registers and the level of the frame outside the recursion, where another walk begins; ``None``
            and 0: the walk has come to its end.
        """
        for frame in steps:
            if len(self._recent) == RECENT:
                begin = self._skip_recursion(frame)
                if begin is not None:
                    return begin
            same = _same(self._native, frame)
            if same is None and not self._is_code(frame.pc):
                break  # the pc is no return address: LLDB also ends its stack there
            self._last = same
            self._add(frame, same)
        return None, 0

    def _add(self, frame: Frame, same: NativeFrame | None) -> None:
        is_by_sframe = frame.unwinder == SFRAME
        if same is None or (self._settings.strict and frame.level and is_by_sframe):
            own: list[Shown] = [Own(frame, scope) for scope in self._scopes.of(frame)]
            if same is not None:  # LLDB knows tail calls from the debug information
                own[:0] = same.indexes[: same.tail_calls]
            self._shown.extend(own)
            self._walked.extend([frame] * len(own))
        else:
            self._shown.extend(same.indexes)
            self._walked.extend([frame] * len(same.indexes))
        if same is None and is_by_sframe and not frame.interrupted and self._may_skip:
            self._recent.append(frame)
        else:
            self._recent.clear()

    def _skip_recursion(self, next_frame: Frame) -> tuple[Registers | None, int] | None:
        """Add the frames that repeat the recent ones.

        :param next_frame: the frame after the recent ones.
        :return: see :meth:`_follow`; ``None``: no frames repeat them.
        """
        recent, process = self._recent, self._process
        self._recent = []
        callers = [*recent[1:], next_frame]
        passed = [
            WalkedFrame(Registers(*frame[1:4]), Caller(frame.cfa or 0, *caller[1:4]), _rule(process, frame))
            for frame, caller in zip(recent, callers)
        ]
        found = repetition(passed, process.arch, process.read)
        if found is None:
            return None
        rounds = min(found.rounds, (self._limit - next_frame.level) // found.length)
        if not rounds or found.fp_change is None or self._has_native(next_frame.sp, found.outer.sp):
            self._may_skip = False  # each attempt looks at all of the recursion
            return None
        frames = recent[-found.length :]
        own: list[Shown] = [Own(frame, scope) for frame in frames for scope in self._scopes.of(frame)]
        self._is_cut = rounds < found.rounds
        found = found._replace(rounds=rounds)
        self._shown.repeat(own, found)
        self._walked.repeat([one.frame for one in own if isinstance(one, Own)], found)
        self._last = None
        if self._is_cut:
            return None, 0
        return found.outer, next_frame.level + found.rounds * found.length

    def _has_native(self, inner: int, outer: int) -> bool:
        """Return whether LLDB has frames of its own, without SFrame, whose SP is in a range."""
        return any(frame.sp is None or inner <= frame.sp < outer for frame in self._native.frames[1:])


def _rule(process: Process, frame: Frame) -> UnwindRule:
    """Return the rule by which SFrame unwound a frame."""
    found = process.modules.results[lookup_address(frame.pc, frame.interrupted)]
    assert isinstance(found, Found)
    return found.rule


def _moved(shown: Shown, by: Repetition, rounds: int) -> Shown:
    return shown if isinstance(shown, int) else Own(further_out(shown.frame, by, rounds), shown.scope)


def _moved_frame(frame: Frame | None, by: Repetition, rounds: int) -> Frame | None:
    return None if frame is None else further_out(frame, by, rounds)


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
