"""Runs commands of LLDB for the plugin itself."""

from __future__ import annotations

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
