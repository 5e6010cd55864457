"""Refuses `thread return` into a frame of the plugin, which has no registers to return to.

LLDB 22 and 23 read the registers of the next frame without a check, and end with SIGSEGV.
"""

from __future__ import annotations

import sys

import lldb

_COMMAND = "thread return"


class ReturnCheck:
    """Examines each `thread return` of some debuggers before LLDB runs it."""

    def __init__(self) -> None:
        self._watched: set[int] = set()
        """The debuggers, by LLDB's number."""

    def watch(self, debugger: lldb.SBDebugger) -> None:
        """Examine the commands of a debugger from now on; a second call changes nothing."""
        if debugger.GetID() in self._watched:
            return
        self._watched.add(debugger.GetID())
        debugger.GetCommandInterpreter().SetCommandOverrideCallback(_COMMAND, lambda *_: _is_refused(debugger))


def _is_refused(debugger: lldb.SBDebugger) -> bool:
    """Return whether LLDB must not run the command; the user has then been told."""
    thread = debugger.GetSelectedTarget().GetProcess().GetSelectedThread()
    if not thread.IsValid():
        return False
    caller = thread.GetFrameAtIndex(thread.GetSelectedFrame().GetFrameID() + 1)
    if not caller.IsValid() or not caller.IsSynthetic() or caller.GetRegisters().GetSize():
        return False
    print(
        f"error: sframe: frame #{caller.GetFrameID()} is SFrame's, which lacks registers to return with",
        file=sys.stderr,
    )
    return True
