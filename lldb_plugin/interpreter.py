"""Runs commands of LLDB for the plugin itself."""

from __future__ import annotations

import functools
import threading

import lldb

from lldb_plugin.session import SESSION


def run(debugger: lldb.SBDebugger, command: str, target: lldb.SBTarget | None = None) -> str:
    """Run a command without showing its output; return the output.  A failure is reported."""
    result = lldb.SBCommandReturnObject()
    interpreter = debugger.GetCommandInterpreter()
    if target is None:
        interpreter.HandleCommand(command, result)
    else:
        interpreter.HandleCommand(command, lldb.SBExecutionContext(target), result)
    if not result.Succeeded():
        SESSION.report(f"{command}: {result.GetError().strip()}")
    return result.GetOutput() or ""


class OwnInterpreter:
    """An interpreter for commands of the plugin, in the targets of all debuggers.

    An interpreter keeps the contexts of its commands in one stack, without a lock.  Beside a command of the user in
    another thread, that command could get the context of the plugin's, or LLDB could crash.

    While a command runs, others of the same object wait: they must not hold a lock of LLDB that the command needs.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()

    @functools.cached_property
    def _debugger(self) -> lldb.SBDebugger:
        return lldb.SBDebugger.Create(False)

    def run(self, command: str, context: lldb.SBExecutionContext) -> None:
        """Run a command; its output and its failure are not shown."""
        with self._lock:
            self._debugger.GetCommandInterpreter().HandleCommand(command, context, lldb.SBCommandReturnObject())
