"""Refuses `thread return` into a frame of the plugin, which has no registers to return to.

LLDB 22 and 23 read the registers of the next frame without a check, and end with SIGSEGV.
"""

from __future__ import annotations

import sys

import lldb

_COMMAND = "thread return"
_watched: set[int] = set()


def watch(debugger: lldb.SBDebugger) -> None:
    """Examine each `thread return` of a debugger first; a second call changes nothing."""
    if debugger.GetID() in _watched:
        return
    _watched.add(debugger.GetID())

    def is_refused(*_words: str) -> bool:
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

    debugger.GetCommandInterpreter().SetCommandOverrideCallback(_COMMAND, is_refused)
