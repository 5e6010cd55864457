"""Tells whether LLDB can run a command at this moment.

LLDB parses the options of one command at a time, under a lock.  An option's value can be an expression, as in
``image lookup --address $pc``; LLDB evaluates it under that lock, in the selected frame, and asks that frame for its
variables.  To answer, the plugin must not run a command that has options: it would wait for the lock for ever.
"""

from __future__ import annotations

import threading

import lldb

_PATIENCE = 0.3
"""Seconds to wait for the lock.  Another thread holds it for microseconds; this thread holds it until it has
answered."""
_COMMAND = "session history --count 1"
"""A command that takes options and needs neither a target nor a lock on one."""


class OptionParser:
    """LLDB's parser of options, tried by a command of each debugger."""

    def __init__(self) -> None:
        self._waiting: dict[int, threading.Thread] = {}
        """By debugger, the thread that tried last; it may still wait for the lock."""

    def is_free(self, debugger: lldb.SBDebugger) -> bool:
        """Return whether a command with options would run, and not wait for its own caller."""
        waiting = self._waiting.get(debugger.GetID())
        if waiting is None or not waiting.is_alive():
            interpreter = debugger.GetCommandInterpreter()
            waiting = threading.Thread(
                target=lambda: interpreter.HandleCommand(_COMMAND, lldb.SBCommandReturnObject()), daemon=True
            )
            self._waiting[debugger.GetID()] = waiting
            waiting.start()
            waiting.join(_PATIENCE)
        return not waiting.is_alive()
