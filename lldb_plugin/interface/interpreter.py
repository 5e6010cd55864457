"""Runs commands of LLDB for the plugin itself."""

from __future__ import annotations

import functools
import os
import threading

import lldb

from lldb_plugin.interface.telling import Report


def run(target: lldb.SBTarget, command: str, report: Report) -> None:
    """Run a command for a target without showing its output.  A failure is reported."""
    result = lldb.SBCommandReturnObject()
    interpreter = target.GetDebugger().GetCommandInterpreter()
    interpreter.HandleCommand(command, lldb.SBExecutionContext(target), result)
    if not result.Succeeded():
        report(f"{command}: {result.GetError().strip()}")


class OwnInterpreter:
    """An interpreter for commands of the plugin, in the targets of all debuggers.

    An interpreter keeps the contexts of its commands in one stack, without a lock.  If the plugin used the user's
    interpreter, a command of the user in another thread could get the context of the plugin's command, or LLDB crash.

    Only one command runs at a time.  Threads that wait here must not hold a lock of LLDB that the command needs.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()

    @functools.cached_property
    def _debugger(self) -> lldb.SBDebugger:
        debugger = lldb.SBDebugger.Create(False)
        # LLDB shows a warning in each debugger, and the user's debugger shows it already.  The output is not
        # redirected: LLDB makes the output of the debugger for which it runs a script that of Python, also for other
        # threads.
        debugger.SetErrorFile(lldb.SBFile(os.open(os.devnull, os.O_WRONLY), "w", True))
        return debugger

    def run(self, command: str, context: lldb.SBExecutionContext) -> str:
        """Run a command and return its output; a failure is not shown."""
        result = lldb.SBCommandReturnObject()
        with self._lock:
            self._debugger.GetCommandInterpreter().HandleCommand(command, context, result)
        return result.GetOutput() or ""
