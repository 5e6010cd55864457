"""The commands and the parameters; arguments and output are the same in both debuggers."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Callable

import gdb

from gdb_plugin.interface.texts import path_of
from gdb_plugin.version import VERSION
from sframe_unwind.debugger import commands
from sframe_unwind.debugger.commands import Arguments, UsageError
from sframe_unwind.debugger.settings import AUTO, GENERATED, MODES, OFF, check_generate
from sframe_unwind.errors import SFrameError
from sframe_unwind.report.terminal import printable

if TYPE_CHECKING:
    from gdb_plugin.commands.stacks import Stacks
    from gdb_plugin.lifecycle.waking import Plugin

_DEBUGGER = f"GDB {VERSION}; GDB has all that the plugin needs"


def _guarded(invoke: Callable[[Any, str, bool], None]) -> Callable[[Any, str, bool], None]:
    """Convert every exception of a command to an error of GDB: one line, and the command has failed."""

    @functools.wraps(invoke)
    def guarded(self: Any, argument: str, from_tty: bool) -> None:
        try:
            invoke(self, argument, from_tty)
        except gdb.GdbError:
            raise
        except UsageError as error:
            raise gdb.GdbError(str(error)) from error
        except gdb.error as error:  # otherwise GDB adds that the error came from Python
            raise gdb.GdbError(f"sframe: {error}") from error
        except SFrameError as error:
            raise gdb.GdbError(f"sframe: {error}") from error
        except Exception as error:  # a traceback does not help the user
            raise gdb.GdbError(f"sframe: {type(error).__name__}: {error}") from error

    return guarded


class _Command(gdb.Command):
    """A command below ``sframe``."""

    command: commands.Command
    """Its name, help and arguments."""

    def __init__(self, plugin: Plugin) -> None:
        self.plugin = plugin
        command = self.command
        self.__doc__ = command.help("GDB")
        super().__init__(f"sframe {command.name}", gdb.COMMAND_STACK)

    def complete(self, text: str, word: str | None) -> list[str] | int:
        """Offer the options that are not in the line yet; after an option that names a context, symbols."""
        if self.command.takes_context and any(f"{option} " in text for option in commands.CONTEXTS):
            return int(gdb.COMPLETE_SYMBOL)
        if word is None:  # GDB first asks for the characters that end words
            return int(gdb.COMPLETE_NONE)
        *before, typed = text.split(" ")
        # For GDB, a hyphen ends a word, and only the text after it is completed.
        broken = len(typed) - len(word)
        options = self.command.all_options
        return [option[broken:] for option in options if option.startswith(typed) and option not in before]

    @_guarded
    def invoke(self, argument: str, from_tty: bool) -> None:
        """Run the command."""
        arguments = self.command.parse_line(argument, gdb.string_to_argv)
        if self.command.has_colours:
            gdb.write("".join(f"{line}\n" for line in self.run(arguments._replace(coloured=_has_colours(from_tty)))))
        else:
            _show(self.run(arguments))

    def stacks(self) -> Stacks:
        """Return the object that reads stacks."""
        from gdb_plugin.commands.stacks import Stacks

        engine = self.plugin.engine()
        return Stacks(engine.unwinder, engine.session)

    def run(self, arguments: Arguments) -> Sequence[str]:
        """Return the lines to print."""
        raise NotImplementedError


def _has_colours(from_tty: bool) -> bool:
    """Return whether GDB itself would write colours: to a terminal, and not to a log or for a program.

    :param from_tty: whether a user has typed the command.
    """
    return from_tty and bool(gdb.parameter("style enabled")) and not gdb.parameter("logging enabled") and os.isatty(1)


def _show(lines: Sequence[str]) -> None:
    gdb.write("".join(f"{printable(line)}\n" for line in lines))


def _threads(every: bool) -> Iterator[gdb.InferiorThread | None]:
    """Select each thread of all inferiors in turn; at the end, select the thread that was selected before."""
    selected = gdb.selected_thread()
    if not every or selected is None:
        yield selected
        return
    frame = None if selected.is_running() else gdb.selected_frame()
    try:
        for inferior in gdb.inferiors():
            for thread in sorted(inferior.threads(), key=lambda thread: int(thread.num)):
                if thread.is_running():  # non-stop: it has no frames
                    gdb.write(f"Thread {thread.num} is running\n")
                    continue
                thread.switch()
                yield thread
    finally:
        selected.switch()
        if frame is not None and frame.is_valid():
            frame.select()


class SFrame(gdb.Command):
    __doc__ = f"{commands.PREFIX_HELP}\n\nUsage: sframe SUBCOMMAND"

    def __init__(self) -> None:
        super().__init__("sframe", gdb.COMMAND_STACK, prefix=True)

    def invoke(self, argument: str, from_tty: bool) -> None:
        """List the subcommands."""
        if argument.strip():
            raise gdb.GdbError(f'Undefined sframe command: "{argument}".  Try "help sframe".')
        gdb.execute("help sframe")


class Status(_Command):
    """``sframe status``."""

    command = commands.STATUS

    def run(self, arguments: Arguments) -> Sequence[str]:
        """Return the lines to print."""
        from sframe_unwind.debugger import output

        try:
            unwinding = self.stacks().unwinding()
        except gdb.error as error:
            reason = f"no stack to unwind: {error}"
            program = path_of(gdb.current_progspace())
            return output.status_without_process(self.plugin.settings, _DEBUGGER, reason, program)
        precedence = unwinding.plans.planner(gdb.newest_frame()).precedence_by_tables()
        lines = output.status_lines(unwinding.process.modules, self.plugin.settings, _DEBUGGER, precedence)
        if not self.plugin.engine().unwinder.enabled:
            lines.insert(2, "the unwinder is disabled, GDB's own unwinds all frames; see 'help enable unwinder'")
        return lines


class Backtrace(_Command):
    """``sframe backtrace``."""

    command = commands.BACKTRACE

    def run(self, arguments: Arguments) -> Sequence[str]:
        """Return the lines to print."""
        from sframe_unwind.debugger import output

        if arguments.context is not None:
            return output.backtrace_lines([self.stacks().of_context(arguments.context, arguments.limit)], False)
        every = commands.ALL in arguments.options
        shown = [(thread, self.stacks().by_sframe(arguments.limit)) for thread in _threads(every)]
        return output.backtrace_lines(
            [stack for _, stack in shown], every and any(thread is not None for thread, _ in shown)
        )


class Compare(_Command):
    """``sframe compare``."""

    command = commands.COMPARE

    def run(self, arguments: Arguments) -> Sequence[str]:
        """Return the lines to print."""
        from sframe_unwind.debugger import output
        from sframe_unwind.debugger.code_judge import CodeJudge

        judge, stacks = CodeJudge(), self.stacks()
        threads = _threads(commands.ALL in arguments.options)
        compared = [stacks.comparison(arguments.limit).judged(judge.rows_of(stacks.code())) for _ in threads]
        return output.compare_lines(compared, arguments)


class Explain(_Command):
    """``sframe explain``."""

    command = commands.EXPLAIN

    def complete(self, text: str, word: str | None) -> int:
        """Complete expressions."""
        return int(gdb.COMPLETE_EXPRESSION)

    def run(self, arguments: Arguments) -> Sequence[str]:
        """Return the lines to print."""
        from gdb_plugin.commands.contexts import address_in
        from gdb_plugin.process.functions import place_of
        from sframe_unwind.debugger.code_judge import code_lines
        from sframe_unwind.debugger.code_registers import register_lines
        from sframe_unwind.report.explain import explain

        stacks = self.stacks()
        if arguments.context is not None:
            pc, here = stacks.explained(arguments.context)
        elif arguments.rest:
            pc, here = address_in(arguments.rest[0]), None
        else:
            pc, here = stacks.selected()
        code = stacks.code()
        module = code.modules.find(pc)
        name = place_of(pc) or (module.run_time_name(pc) if module is not None else "")
        return [*explain(code.modules, pc, name, here), *code_lines(code, pc), *register_lines(code, pc)]


class Disassemble(_Command):
    """``sframe disassemble``."""

    command = commands.DISASSEMBLE

    def complete(self, text: str, word: str | None) -> int:
        """Complete expressions."""
        return int(gdb.COMPLETE_EXPRESSION)

    def run(self, arguments: Arguments) -> Sequence[str]:
        """Return the lines to print."""
        from gdb_plugin.commands.disassembling import disassembled

        with_source, address = commands.source_and_address(arguments)
        return disassembled(self.stacks(), address, with_source, arguments.coloured)


class Tasks(_Command):
    """``sframe tasks``."""

    command = commands.TASKS

    def run(self, arguments: Arguments) -> Sequence[str]:
        """Return the lines to print."""
        from sframe_unwind.kernel.tasks import BLOCKED

        state = BLOCKED if commands.BLOCKED in arguments.options else ""
        return self.stacks().of_tasks(" ".join(arguments.rest), state)


class Mode(gdb.Parameter):
    """``set sframe mode``."""

    set_doc = "Set which frames are unwound from SFrame."
    show_doc = "Show which frames are unwound from SFrame."
    __doc__ = commands.MODE.details.replace("{debugger}", "GDB")

    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin
        super().__init__("sframe mode", gdb.COMMAND_STACK, gdb.PARAM_ENUM, MODES)
        self.value = AUTO

    def get_set_string(self) -> str:
        """Apply the new value, also to frames that are already unwound."""
        self._plugin.choose(self._plugin.settings._replace(mode=self.value))
        return ""

    def get_show_string(self, value: str) -> str:
        """Return what ``show`` prints."""
        return f"The mode of the SFrame unwinder is {value!r}."


class Strict(gdb.Parameter):
    """``set sframe strict``."""

    set_doc = "Set whether SFrame alone unwinds every frame that it covers, in the modes auto and always."
    show_doc = "Show whether SFrame alone unwinds every frame that it covers, in the modes auto and always."
    __doc__ = commands.STRICT.details.replace("{debugger}", "GDB")

    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin
        super().__init__("sframe strict", gdb.COMMAND_STACK, gdb.PARAM_BOOLEAN)
        self.value = False

    def get_set_string(self) -> str:
        """Apply the new value, also to frames that are already unwound."""
        self._plugin.choose(self._plugin.settings._replace(strict=bool(self.value)))
        return ""

    def get_show_string(self, value: str) -> str:
        """Return what ``show`` prints."""
        return f"Strict SFrame unwinding is {value}."


class Generate(gdb.Parameter):
    """``set sframe generate``."""

    set_doc = "Set what is generated for code without SFrame: tables from its DWARF CFI, or rules from the code itself."
    show_doc = "Show what is generated for code without SFrame."
    __doc__ = commands.GENERATE.details.replace("{debugger}", "GDB")

    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin
        super().__init__("sframe generate", gdb.COMMAND_STACK, gdb.PARAM_ENUM, GENERATED)
        self.value = OFF

    def get_set_string(self) -> str:
        """Apply the new value, also to frames that are already unwound.

        :raises gdb.GdbError: this Python lacks what interprets machine code; the value is then as before.
        """
        settings = self._plugin.settings
        try:
            check_generate(self.value)
        except SFrameError as error:
            self.value = settings.generate
            raise gdb.GdbError(f"sframe: {error}") from error
        self._plugin.choose(settings._replace(generate=self.value))
        return ""

    def get_show_string(self, value: str) -> str:
        """Return what ``show`` prints."""
        return f"What is generated for code without SFrame is {value!r}."


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
    shown = "; ".join(f"show sframe {name}" for name in ("mode", "strict", "generate"))
    _Prefix("show sframe", "Show the settings of the SFrame unwinder.", shown)
    SFrame()
    for made in (Mode, Strict, Generate, Status, Backtrace, Compare, Explain, Disassemble, Tasks):
        made(plugin)
    gdb.execute("alias sframe bt = sframe backtrace")
