"""The commands and settings as GDB knows them from the start: names and help.  The rest is loaded on first use."""

from __future__ import annotations

import gdb

from sframe_unwind import TYPE_CHECKING
from sframe_unwind.debugger import commands
from sframe_unwind.debugger.modes import GENERATED, MODES

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
    """A setting below ``set sframe``; its first value is the default."""

    field = ""
    """Its name, also in the plugin's settings."""
    kind = gdb.PARAM_ENUM
    values: tuple[str, ...] = ()
    """The values of an enumeration."""
    shown = ""
    """What ``show`` prints, with a place for the value."""
    value: Any
    """A text or a truth value, which GDB sets."""

    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin
        super().__init__(f"sframe {self.field}", gdb.COMMAND_STACK, self.kind, *([self.values] if self.values else []))

    def get_set_string(self) -> str:
        """Apply the new value, also to frames that are already unwound."""
        self._plugin.choose(self._plugin.settings._replace(**{self.field: self.value}))
        return ""

    def get_show_string(self, value: str) -> str:
        """Return what ``show`` prints."""
        return self.shown.format(value)


def _first_lines(command: commands.Command) -> tuple[str, str]:
    """Return the first lines of the help of ``set`` and ``show``, from the summary of LLDB's command for both."""
    return f"{command.summary}.".replace("Show or set", "Set"), f"{command.summary}.".replace("Show or set", "Show")


class Mode(_Setting):
    __doc__ = commands.MODE.details.replace("{debugger}", "GDB")
    set_doc, show_doc = _first_lines(commands.MODE)
    field, values = "mode", MODES
    shown = "The mode of the SFrame unwinder is {!r}."


class Strict(_Setting):
    __doc__ = commands.STRICT.details.replace("{debugger}", "GDB")
    set_doc, show_doc = _first_lines(commands.STRICT)
    field, kind = "strict", gdb.PARAM_BOOLEAN
    shown = "Strict SFrame unwinding is {}."


class Generate(_Setting):
    __doc__ = commands.GENERATE.details.replace("{debugger}", "GDB")
    set_doc, show_doc = _first_lines(commands.GENERATE)
    field, values = "generate", GENERATED
    shown = "What is generated for code without SFrame is {!r}."

    def get_set_string(self) -> str:
        """Apply the new value.

        :raises gdb.GdbError: this Python lacks what interprets machine code; the value is then as before.
        """
        from sframe_unwind.debugger.settings import check_generate
        from sframe_unwind.errors import SFrameError

        try:
            check_generate(self.value)
        except SFrameError as error:
            self.value = self._plugin.settings.generate
            raise gdb.GdbError(f"sframe: {error}") from error
        return super().get_set_string()


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
    for setting in (Mode, Strict, Generate):
        setting(plugin)
    for command in commands.IN_BOTH:
        Entry(plugin, command)
    for name, command in commands.SHORT.items():
        gdb.execute(f"alias sframe {name} = sframe {command.name}")
