"""The plugin, once in an LLDB: its commands, and what watches for the first module with SFrame."""

from __future__ import annotations

import re
import threading

import lldb

from lldb_plugin.lifecycle.commanding import Commanding
from lldb_plugin.lifecycle.stack_changes import StackChanges
from lldb_plugin.lifecycle.watching import Watcher
from lldb_plugin.loading import loading
from lldb_plugin.version import TAKES_FRAMES, lacks
from sframe_unwind import TYPE_CHECKING, __version__
from sframe_unwind.debugger.banner import is_read_by_a_person
from sframe_unwind.debugger.commands import IN_LLDB, PREFIX_HELP, SHORT, Command

if TYPE_CHECKING:
    from lldb_plugin.commands.commands import Commands
    from lldb_plugin.lifecycle.engine import Engine

_FOR_PROGRAMS = re.compile(rb"-b|--batch")
"""Arguments of an LLDB whose output a program reads."""

_MODULE = "sframe_lldb"
"""The module in which LLDB looks for the classes."""


class Plugin:
    """All that the plugin knows, for all debuggers of this LLDB.

    While it sleeps, only what looks for the first module with SFrame is loaded.
    """

    def __init__(self) -> None:
        self._debuggers: set[int] = set()
        self._commanding = Commanding()
        self._stack_changes = StackChanges()
        self.watcher = Watcher(self._commanding, self._stack_changes, self._prepare)
        self._loading = threading.Lock()
        """Held while the rest is loaded: by the first command, or by the thread that looks at targets."""
        self._engine: Engine | None = None
        self._commands: Commands | None = None

    def start(self, debugger: lldb.SBDebugger) -> None:
        """Create the commands of a debugger and watch its targets; a second call changes nothing."""
        if debugger.GetID() in self._debuggers:
            return
        self._debuggers.add(debugger.GetID())
        interpreter, result = debugger.GetCommandInterpreter(), lldb.SBCommandReturnObject()
        interpreter.HandleCommand(f"command container add -h '{PREFIX_HELP}' sframe", result)
        for name, command in {**{command.name: command for command in IN_LLDB}, **SHORT}.items():
            line = f"command script add -o -c {_MODULE}.{class_name(command)} sframe {name}"
            interpreter.HandleCommand(line, result)
        if TAKES_FRAMES:
            self.watcher.watch(debugger)
            line = "stack frames are unwound from SFrame; see 'help sframe'"
        else:
            line = lacks()
        if is_read_by_a_person(_FOR_PROGRAMS):
            print(f"sframe-unwind {__version__}: {line}")

    def engine(self) -> Engine:
        """Return the part of the plugin that unwinds, which is loaded when it is first needed."""
        with self._loading:
            if self._engine is None:
                from lldb_plugin.lifecycle.engine import Engine

                self._engine = Engine(self.watcher, self._commanding, self._stack_changes)
            return self._engine

    def commands(self) -> Commands:
        """Return the object that runs the commands."""
        engine = self.engine()
        with self._loading:
            if self._commands is None:
                from lldb_plugin.commands.commands import Commands

                self._commands = Commands(engine)
            return self._commands

    def _prepare(self, target: lldb.SBTarget, is_new: bool) -> bool:
        """Do what new modules of a target need; see :class:`lldb_plugin.lifecycle.watching.Watcher`."""
        with loading():
            return self.engine().new_modules.prepare(target, is_new)


_PLUGIN = Plugin()


def class_name(command: Command) -> str:
    """Return the name by which LLDB finds the class of a command."""
    return command.name.capitalize()


def the_plugin() -> Plugin:
    """Return the plugin, for the classes that LLDB finds by name: commands and stop-hooks."""
    return _PLUGIN
