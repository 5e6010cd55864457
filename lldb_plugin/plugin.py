"""Starts the plugin: creates its commands, and watches for the first module with SFrame."""

from __future__ import annotations

import re

import lldb

from lldb_plugin.lifecycle.watching import WATCHER
from lldb_plugin.version import TAKES_FRAMES
from sframe_unwind import __version__
from sframe_unwind.debugger.banner import is_read_by_a_person
from sframe_unwind.debugger.commands import PREFIX_HELP

_FOR_PROGRAMS = re.compile(rb"-b|--batch")
"""Arguments of an LLDB whose output a program reads."""

_MODULE = "sframe_lldb"
"""The module in which LLDB looks for the classes."""

_COMMANDS = (
    ("mode", "Mode"),
    ("strict", "Strict"),
    ("generate", "Generate"),
    ("status", "Status"),
    ("backtrace", "Backtrace"),
    ("bt", "Backtrace"),
    ("compare", "Compare"),
    ("explain", "Explain"),
    ("tasks", "Tasks"),
    ("convert", "Convert"),
)
_debuggers: set[int] = set()


def lacks() -> str:
    """Return the features that the running LLDB lacks, in words."""
    if not TAKES_FRAMES:
        return "this LLDB has no scripted frame provider (LLDB 22 has): bt is its own, the sframe commands work"
    return "this LLDB has all that the plugin needs"


def start(debugger: lldb.SBDebugger) -> None:
    """Create the commands and watch the targets; a second call changes nothing."""
    if debugger.GetID() in _debuggers:
        return
    _debuggers.add(debugger.GetID())
    interpreter, result = debugger.GetCommandInterpreter(), lldb.SBCommandReturnObject()
    interpreter.HandleCommand(f"command container add -h '{PREFIX_HELP}' sframe", result)
    for name, kind in _COMMANDS:
        interpreter.HandleCommand(f"command script add -o -c {_MODULE}.{kind} sframe {name}", result)
    if TAKES_FRAMES:
        WATCHER.watch(debugger)
        line = "stack frames are unwound from SFrame; see 'help sframe'"
    else:
        line = lacks()
    if is_read_by_a_person(_FOR_PROGRAMS):
        print(f"sframe-unwind {__version__}: {line}")
