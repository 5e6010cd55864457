"""Starts the plugin: creates its commands, and registers its provider with every target."""

from __future__ import annotations

import contextlib
import importlib.util
import re

import lldb

from lldb_plugin import new_targets, shown_frames, targets
from lldb_plugin.completion import import_rlcompleter
from lldb_plugin.interpreter import run
from lldb_plugin.session import SESSION
from sframe_unwind import __version__
from sframe_unwind.debugger.banner import is_read_by_a_person
from sframe_unwind.debugger.commands import PREFIX_HELP
from sframe_unwind.debugger.settings import OFF, Settings

_TAKES_FRAMES = importlib.util.find_spec("lldb.plugins.scripted_frame_provider") is not None
"""Whether this LLDB takes frames from a plugin; LLDB 22 is the first version that does."""

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
    if not _TAKES_FRAMES:
        return "this LLDB has no scripted frame provider (LLDB 22 has): bt is its own, the sframe commands work"
    return "this LLDB has all that the plugin needs"


def start(debugger: lldb.SBDebugger) -> None:
    """Create the commands and register the provider; a second call changes nothing."""
    if debugger.GetID() in _debuggers:
        return
    _debuggers.add(debugger.GetID())
    import_rlcompleter()
    run(debugger, f"command container add -h '{PREFIX_HELP}' sframe")
    for name, kind in _COMMANDS:
        run(debugger, f"command script add -o -c {_MODULE}.{kind} sframe {name}")
    if _TAKES_FRAMES:
        _fit(_targets(debugger))
        new_targets.watch(debugger)
        line = "stack frames are unwound from SFrame; see 'help sframe'"
    else:
        line = lacks()
    if is_read_by_a_person(_FOR_PROGRAMS):
        print(f"sframe-unwind {__version__}: {line}")


def change(settings: Settings) -> None:
    """Change the settings, also for frames that are already shown."""
    if settings.generate != SESSION.settings.generate:
        SESSION.forget_modules()
    was_off, SESSION.settings = SESSION.settings.mode == OFF, settings
    if not _TAKES_FRAMES:
        return
    known = [target for number in _debuggers for target in _targets(lldb.SBDebugger.FindDebuggerWithID(number))]
    with contextlib.ExitStack() as selections:
        for target in known:
            selections.enter_context(shown_frames.selection_kept(target))
        if was_off and settings.mode != OFF:
            new_targets.watch_again()
        _fit(known)
        if settings.mode == OFF:
            new_targets.rest()
        shown_frames.forget_frames()


def _fit(known: list[lldb.SBTarget]) -> None:
    for target in known:
        targets.fit(target, has_frames=target.GetProcess().IsValid())


def _targets(debugger: lldb.SBDebugger) -> list[lldb.SBTarget]:
    """Return the targets of a debugger; a destroyed debugger has none."""
    return [debugger.GetTargetAtIndex(index) for index in range(debugger.GetNumTargets())]
