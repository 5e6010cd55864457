"""The plugin's stop-hook, which a target gets together with the frame provider.

An active stop-hook changes how LLDB treats those of the user: LLDB prints a header for each hook if several are active,
and the process stays stopped if one of them does not ask to continue.  So the plugin's hook is active only while SFrame
changes a stack.  It is made earlier, because LLDB takes its lock for parsing options to add a hook, and that is not
possible while it asks for frames; to enable a hook, it takes no lock.  The hook does not run when LLDB gains control of
a process: after `gdb-remote`, LLDB 22 and 23 would then show no thread.
"""

from __future__ import annotations

import lldb

from lldb_plugin.interface.interpreter import OwnInterpreter

_CLASS = "sframe_lldb.SFrameStopHook"
"""The class of the hook, in the module in which LLDB looks for it."""


class StopHooks:
    """The hooks of the targets.

    :param interpreter: runs the commands that make, enable and disable them.
    """

    def __init__(self, interpreter: OwnInterpreter) -> None:
        self._interpreter = interpreter
        self._hooks: dict[int, str] = {}
        """By target, LLDB's number of the hook."""
        self._active: set[int] = set()
        """The targets in which it is enabled."""

    def add(self, target: lldb.SBTarget) -> None:
        """Make the hook of a target, which is not active yet; a second call changes nothing."""
        if target.GetGloballyUniqueID() in self._hooks:
            return
        context = lldb.SBExecutionContext(target)
        said = self._interpreter.run(f"target stop-hook add -I false -P {_CLASS}", context)
        hook = self._hooks[target.GetGloballyUniqueID()] = said.partition("#")[2].partition(" ")[0]
        self._interpreter.run(f"target stop-hook disable {hook}", context)

    def need(self, target: lldb.SBTarget) -> None:
        """Enable the hook; this waits for no lock of LLDB's."""
        self._switch("enable", target, is_active=False)

    def need_no_more(self, target: lldb.SBTarget) -> None:
        """Disable the hook, as SFrame changes no stack of a target."""
        self._switch("disable", target, is_active=True)

    def _switch(self, action: str, target: lldb.SBTarget, is_active: bool) -> None:
        """Enable or disable the hook of a target; nothing happens if the user has deleted it."""
        number = target.GetGloballyUniqueID()
        if number in self._hooks and (number in self._active) == is_active:
            (self._active.discard if is_active else self._active.add)(number)
            self._interpreter.run(f"target stop-hook {action} {self._hooks[number]}", lldb.SBExecutionContext(target))
