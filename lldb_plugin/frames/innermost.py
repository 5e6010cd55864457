"""Detects that LLDB wrongly takes the innermost frame for a new one after a step.

LLDB identifies a frame by the CFA that it computes.  If it has neither CFI nor the beginning of the function, that CFA
changes with each ``push``.  LLDB then believes that a step over one instruction has entered a function, and runs to the
return address in the next frame.  Where there is no next frame, the step ends as it should.
"""

from __future__ import annotations

import lldb

from sframe_unwind.named_tuple import NamedTuple

_LIMIT = 1_000
"""Number of threads whose frames are kept."""


class _Innermost(NamedTuple):
    sframe_cfa: int | None
    lldb_cfa: int | None


class InnermostFrames:
    """The innermost frames for which LLDB asked last, of each thread."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, int], _Innermost] = {}
        """By the numbers of process and thread."""

    def is_mistaken(self, thread: lldb.SBThread, sframe_cfa: int | None, lldb_cfa: int | None) -> bool:
        """Record the innermost frame of a stopped thread; return whether LLDB wrongly takes it for a new one.

        The result is true only once for a frame: the second call finds the CFA that the first one recorded.

        :param sframe_cfa: its CFA by SFrame; ``None``: not known.
        :param lldb_cfa: its CFA by LLDB; ``None``: not known.
        """
        key = thread.GetProcess().GetUniqueID(), thread.GetThreadID()
        found = _Innermost(sframe_cfa, lldb_cfa)
        before = self._last.pop(key, found)
        self._last[key] = found
        if len(self._last) > _LIMIT:
            del self._last[next(iter(self._last))]
        return sframe_cfa is not None and before.sframe_cfa == sframe_cfa and before.lldb_cfa != lldb_cfa
