"""Commands of LLDB's that the plugin runs for itself."""

from __future__ import annotations

import lldb

from lldb_plugin.session import SESSION


def run(debugger: lldb.SBDebugger, command: str, target: lldb.SBTarget | None = None) -> str:
    """Run a command without showing what it prints, and return that; a failure is reported."""
    result = lldb.SBCommandReturnObject()
    interpreter = debugger.GetCommandInterpreter()
    if target is None:
        interpreter.HandleCommand(command, result)
    else:
        interpreter.HandleCommand(command, lldb.SBExecutionContext(target), result)
    if not result.Succeeded():
        SESSION.report(f"{command}: {result.GetError().strip()}")
    return result.GetOutput() or ""
