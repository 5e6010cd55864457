"""The frames that LLDB shows of stopped processes, and the frame that is selected among them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Callable

import lldb

from lldb_plugin.interface.telling import Report
from lldb_plugin.lifecycle.invalidate import Invalidation
from lldb_plugin.lifecycle.session import Session
from lldb_plugin.loading import no_collection
from lldb_plugin.version import NUMBERS_FRAMES_ANEW

_FEW = 1_000
"""Maximum number of LLDB's own frames; counting them takes 5 microseconds."""


class ShownFrames:
    """The frames of all processes.

    :param plugged: returns the targets that have the provider.
    :param report: shows one line to the user.
    """

    def __init__(
        self,
        session: Session,
        invalidation: Invalidation,
        plugged: Callable[[], list[lldb.SBTarget]],
        report: Report,
    ) -> None:
        self._session = session
        self._invalidation = invalidation
        self._plugged = plugged
        self._report = report

    def fetch(self, thread: lldb.SBThread) -> None:
        """Make LLDB take all of SFrame's frames at once, unless it can take them one after the other as well.

        If LLDB takes the frames one after the other, it looks at few of them even if there are 250,000, as at a stack
        overflow.  But LLDB 23.1.0 then counts its own frames each time, so it must have few, as in a stripped program.
        LLDB 22 must take all at once, since it gives frames that it takes later the numbers of other frames.
        """
        own = self._session.replaced(thread) if thread.IsValid() else None
        if own is not None and (NUMBERS_FRAMES_ANEW or own.GetSize() > _FEW):
            with no_collection():
                thread.GetNumFrames()

    def forget_frames(self) -> None:
        """Make LLDB ask again for all frames of the targets that have the provider."""
        for target in self._plugged():
            # If the process runs, LLDB asks at the next stop.
            if target.GetProcess().GetState() == lldb.eStateStopped and not self._invalidation.forget_frames(target):
                self._report("this LLDB keeps the frames that it has shown; the mode counts from the next stop on")

    @contextlib.contextmanager
    def selections_kept(self, target: lldb.SBTarget) -> Iterator[None]:
        """Select the frame with the same number again in each thread, after a stopped process has got other frames."""
        process = target.GetProcess()
        if process.GetState() != lldb.eStateStopped:
            yield
            return
        frames = [(thread, thread.GetSelectedFrame()) for thread in process]
        selected = [(thread, frame.GetFrameID()) for thread, frame in frames if frame.IsValid() and frame.GetFrameID()]
        yield
        self.fetch(process.GetSelectedThread())
        for thread, index in selected:
            if index < thread.GetNumFrames():
                thread.SetSelectedFrame(index)
