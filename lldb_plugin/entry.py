"""The commands as LLDB knows them from the start: names and help.  What they do is loaded when one is called."""

from __future__ import annotations

import lldb

from lldb_plugin.loading import loading
from lldb_plugin.plugin import class_name, the_plugin
from sframe_unwind import TYPE_CHECKING
from sframe_unwind.debugger import commands

if TYPE_CHECKING:
    from typing import Any, ClassVar

DEBUGGER = "LLDB"


class Entry:
    """A command below ``sframe``."""

    shared: ClassVar[commands.Command]

    def __init__(self, debugger: lldb.SBDebugger, internal_dict: dict[str, Any]) -> None:
        pass

    def get_short_help(self) -> str:
        """Return the line for the list of commands."""
        return f"{self.shared.summary}.".replace("{debugger}", DEBUGGER)

    def get_long_help(self) -> str:
        """Return the help."""
        return self.shared.help(DEBUGGER)

    def __call__(
        self,
        debugger: lldb.SBDebugger,
        command: str,
        context: lldb.SBExecutionContext,
        result: lldb.SBCommandReturnObject,
    ) -> None:
        """Run the command."""
        with loading():
            the_plugin().commands().run(self.shared, command, context, result)


CLASSES = {
    class_name(command): type(class_name(command), (Entry,), {"shared": command}) for command in commands.IN_LLDB
}
"""The class of each command by its name.  LLDB makes the object, and does not tell it which command it is for."""


class SFrameStopHook:
    """The hook of a target in which SFrame can change stacks; see :mod:`lldb_plugin.lifecycle.stop_hooks`."""

    def __init__(self, target: lldb.SBTarget, extra_args: Any, internal_dict: dict[str, Any]) -> None:
        pass

    def handle_stop(self, exe_ctx: lldb.SBExecutionContext, stream: lldb.SBStream) -> bool:
        """Complete what could not be done when LLDB asked for frames, and stay stopped."""
        the_plugin().engine().at_stop(exe_ctx)
        return True
