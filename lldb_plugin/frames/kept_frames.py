"""Keeps LLDB's own frames of threads for which it shows the plugin's frames, since LLDB gives no other access to them.

LLDB gives a provider the list of its own frames.  Access to these frames while LLDB asks the provider deadlocks
LLDB 23.1.0, so the list is only kept, and read when a command needs it.
"""

from __future__ import annotations

import lldb

from sframe_unwind.named_tuple import NamedTuple

_PROCESSES = 8
"""Number of processes for which lists are kept."""


class Moment(NamedTuple):
    """A thread at one stop, by LLDB's numbers."""

    process: int
    stop: int
    thread: int


def moment_of(thread: lldb.SBThread) -> Moment:
    """Return the moment of a stopped thread; this waits for LLDB's lock on the target."""
    process = thread.GetProcess()
    return Moment(process.GetUniqueID(), process.GetStopID(), thread.GetThreadID())


class KeptFrames:
    """The lists of the last stop of each process."""

    def __init__(self) -> None:
        self._lists: dict[int, dict[Moment, lldb.SBFrameList]] = {}

    def keep(self, moment: Moment, frames: lldb.SBFrameList) -> None:
        """Keep the list of a thread, and drop those of earlier stops."""
        lists = self._lists.pop(moment.process, {})
        if any(other.stop != moment.stop for other in lists):
            lists = {}
        lists[moment] = frames
        self._lists[moment.process] = lists
        for oldest in list(self._lists)[:-_PROCESSES]:
            del self._lists[oldest]

    def drop(self, moment: Moment) -> None:
        """Drop the list of a thread: LLDB lists its frames anew."""
        self._lists.get(moment.process, {}).pop(moment, None)

    def get(self, moment: Moment) -> lldb.SBFrameList | None:
        """Return the list of a thread; ``None``: LLDB shows its own frames."""
        return self._lists.get(moment.process, {}).get(moment)
