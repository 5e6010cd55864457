"""The commands and settings as GDB knows them from the start: names and help.  The rest is loaded on first use."""

from __future__ import annotations

import gdb

from sframe_unwind import TYPE_CHECKING
from sframe_unwind.debugger import commands

if TYPE_CHECKING:
    from typing import Any

    from gdb_plugin.lifecycle.waking import Plugin


class Entry(gdb.Command):
    """A command below ``sframe``."""

    def __init__(self, plugin: Plugin, command: commands.Command) -> None:
        self._plugin = plugin
        self._command = command
        self.__doc__ = command.help("GDB")
        super().__init__(f"sframe {command.name}", gdb.COMMAND_STACK)

    def complete(self, text: str, word: str | None) -> list[str] | int:
        """Offer the options that are not in the line yet; after an option that names a context, symbols.

        For a command that takes text, offer what GDB offers in an expression.
        """
        if self._command.takes_text:
            return int(gdb.COMPLETE_EXPRESSION)
        if self._command.takes_context and any(f"{option} " in text for option in commands.CONTEXTS):
            return int(gdb.COMPLETE_SYMBOL)
        if word is None:  # GDB first asks for the characters that end words
            return int(gdb.COMPLETE_NONE)
        *before, typed = text.split(" ")
        # For GDB, a hyphen ends a word, and only the text after it is completed.
        broken = len(typed) - len(word)
        options = self._command.all_options
        return [option[broken:] for option in options if option.startswith(typed) and option not in before]

    def invoke(self, argument: str, from_tty: bool) -> None:
        """Run the command."""
        from gdb_plugin.commands.commands import run

        run(self._plugin, self._command, argument, from_tty)


class SFrame(gdb.Command):
    __doc__ = f"{commands.PREFIX_HELP}\n\nUsage: sframe SUBCOMMAND"

    def __init__(self) -> None:
        super().__init__("sframe", gdb.COMMAND_STACK, prefix=True)

    def invoke(self, argument: str, from_tty: bool) -> None:
        """List the subcommands."""
        if argument.strip():
            raise gdb.GdbError(f'Undefined sframe command: "{argument}".  Try "help sframe".')
        gdb.execute("help sframe")


class _Setting(gdb.Parameter):
    """A setting below ``set sframe`` and ``show sframe``."""

    value: Any
    """A text or a truth value, which GDB sets."""

    def __init__(self, plugin: Plugin, setting: commands.Setting) -> None:
        self._plugin = plugin
        self._setting = setting
        self.__doc__ = setting.details.replace("{debugger}", "GDB")
        # The summary is that of LLDB's command, which does both.
        self.set_doc = f"{setting.summary}.".replace("Show or set", "Set")
        self.show_doc = f"{setting.summary}.".replace("Show or set", "Show")
        kind = (gdb.PARAM_BOOLEAN,) if setting.is_switch else (gdb.PARAM_ENUM, setting.values)
        super().__init__(f"sframe {setting.name}", gdb.COMMAND_STACK, *kind)

    def get_set_string(self) -> str:
        """Apply the new value, also to frames that are already unwound.

        :raises gdb.GdbError: this Python lacks what the value needs; the value is then as before.
        """
        from sframe_unwind.debugger.settings import changed
        from sframe_unwind.errors import SFrameError

        before, name = self._plugin.settings, self._setting.name
        try:
            settings = changed(before, name, self.value)
        except SFrameError as error:
            self.value = getattr(before, name)
            raise gdb.GdbError(f"sframe: {error}") from error
        self._plugin.choose(settings)
        return ""

    def get_show_string(self, value: str) -> str:
        """Return what ``show`` prints."""
        return self._setting.shown.format(value)


class _Prefix(gdb.Command):
    """``set sframe`` and ``show sframe``.

    :param command: the command to run if no subcommand follows; GDB 13 would do nothing.
    """

    def __init__(self, name: str, doc: str, command: str) -> None:
        self.__doc__ = doc
        self._name = name
        self._commands = command.split("; ")
        super().__init__(name, gdb.COMMAND_STACK, prefix=True)

    def invoke(self, argument: str, from_tty: bool) -> None:
        """List the settings."""
        if argument.strip():
            raise gdb.GdbError(f'Undefined {self._name} command: "{argument}".  Try "help {self._name}".')
        for command in self._commands:
            gdb.execute(command)


def register(plugin: Plugin) -> None:
    """Create all commands and parameters."""
    _Prefix("set sframe", "Settings of the SFrame unwinder.", "help set sframe")
    names = [command.name for command in commands.SETTINGS]
    shown = "; ".join(f"show sframe {name}" for name in names)
    _Prefix("show sframe", "Show the settings of the SFrame unwinder.", shown)
    SFrame()
    for setting in commands.SETTINGS:
        _Setting(plugin, setting)
    for command in commands.IN_BOTH:
        Entry(plugin, command)
    for name, command in commands.SHORT.items():
        gdb.execute(f"alias sframe {name} = sframe {command.name}")
