"""Answers LLDB's question whether the provider applies to a thread, as far as LLDB's locks permit."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

import lldb

from lldb_plugin.frames.kept_frames import Moment, moment_of
from lldb_plugin.interface.lock import acquire
from lldb_plugin.interface.telling import Report, tell
from lldb_plugin.lifecycle.decision import Decisions
from lldb_plugin.lifecycle.invalidate import Invalidation
from lldb_plugin.lifecycle.renewal import Renewals
from lldb_plugin.lifecycle.session import Session
from lldb_plugin.lifecycle.stop_hooks import StopHooks
from lldb_plugin.version import CAN_RENEW
from sframe_unwind.named_tuple import NamedTuple

if TYPE_CHECKING:
    from lldb_plugin.frames.frame_list import FrameList
    from lldb_plugin.frames.frame_plan import Shown
    from lldb_plugin.frames.scripted_frame import FrameMaker

_PATIENCE = 0.001
"""Seconds to wait for LLDB's lock on the target: for a call in another thread that does not wait for these frames."""

_INNERMOST: tuple[Shown, ...] = (0,)
"""LLDB's own innermost frame alone: a step ends where LLDB finds no frame to which it could return."""


class Decided(NamedTuple):
    """The frames that a provider gets when it is made."""

    shown: FrameList[Shown] | tuple[Shown, ...]
    maker: FrameMaker
    moment: Moment


class Questions:
    """The questions of the threads of LLDB, each of which creates a provider at once if the answer is yes.

    :param report: shows one line to the user.
    """

    def __init__(
        self,
        session: Session,
        hooks: StopHooks,
        renewals: Renewals,
        invalidation: Invalidation,
        report: Report,
    ) -> None:
        self._session = session
        self._hooks = hooks
        self._renewals = renewals
        self._invalidation = invalidation
        self._report = report
        self._decisions = Decisions(session, report)
        self._decided: dict[int, Decided] = {}
        """The frames for the provider that a thread of LLDB is about to create, by the number of that thread.

        Not :class:`threading.local`: its contents for a thread that Python did not create are lost when a call returns.
        """
        self._used_by_others: set[int] = set()
        """The processes in which a thread with LLDB's lock uses the frames that are to be replaced."""

    def applies(self, target: lldb.SBTarget, thread: lldb.SBThread) -> bool:
        """Return whether some frame of a thread is SFrame's and not LLDB's own; the frames are then known."""
        asker = threading.get_ident()
        self._decided.pop(asker, None)
        # Access to the innermost frame makes LLDB 22 ask again, and that call lists LLDB's own frames.
        if self._session.is_off() or asker in self._session.deciding:
            return False
        process = target.GetProcess()
        if self._session.leaves_frames_alone(process):
            return False
        mutex = target.GetAPIMutex()
        renew = partial(self._renew, target)
        # The thread that holds the lock may be waiting for these frames.
        if not acquire(mutex, _PATIENCE):
            self._used_by_others.add(process.GetUniqueID())
            self._renewals.later(target, thread, renew, waits=CAN_RENEW)
            self._hooks.need(target)
            return False
        try:
            moment = moment_of(thread)
            self._session.kept.drop(moment)
            self._renewals.done(target, thread)
            answers = self._decisions.answers(thread)
            if answers is not None:
                self._hooks.need(target)
                if answers.should_wait:
                    self._renewals.later(target, thread, renew, waits=False)
                shown = _INNERMOST if answers.should_wait else answers.shown
                self._decided[asker] = Decided(shown, answers.maker, moment)
        finally:
            mutex.unlock()
        return asker in self._decided

    def decided(self, native: lldb.SBFrameList) -> Decided | None:
        """Return the frames that this thread is to show, of which :meth:`applies` has just told it; ``None``: none.

        :param native: LLDB's own frames, which these replace.
        """
        decided = self._decided.pop(threading.get_ident(), None)
        if decided is not None:
            self._session.kept.keep(decided.moment, native)
        return decided

    def _renew(self, target: lldb.SBTarget, threads: list[lldb.SBThread]) -> None:
        """Make LLDB ask again for the frames of a target if those of some threads are SFrame's.

        LLDB 22 keeps its own frames if another thread uses them; one line reports it at each stop where that happens.
        """
        process = target.GetProcess().GetUniqueID()
        others = process in self._used_by_others
        self._used_by_others.discard(process)
        if all(self._decisions.answers(thread) is None for thread in threads):
            return
        if others and not CAN_RENEW:
            tell("another thread had the lock of LLDB 22: the frames at this stop are LLDB's own")
        elif not self._invalidation.forget_frames(target):
            self._report("this LLDB keeps the frames that it has shown; SFrame's are shown at the next stop")
