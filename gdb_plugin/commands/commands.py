"""What the commands do; arguments and output are the same in both debuggers.

The modules that one command needs are imported when it runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Callable

import gdb

from gdb_plugin.commands.stacks import Stacks
from gdb_plugin.interface.texts import path_of
from gdb_plugin.version import VERSION
from sframe_unwind.debugger import commands, output
from sframe_unwind.debugger.arguments import Arguments, UsageError, parse_line, source_and_address
from sframe_unwind.errors import SFrameError
from sframe_unwind.report.terminal import printable

if TYPE_CHECKING:
    from gdb_plugin.lifecycle.waking import Plugin

_Run = Callable[["Plugin", Arguments], Sequence[str]]
"""Returns the lines to print."""

_DEBUGGER = f"GDB {VERSION}; GDB has all that the plugin needs"


def run(plugin: Plugin, command: commands.Command, text: str, from_tty: bool) -> None:
    """Run a command.

    :param text: the rest of the line.
    :param from_tty: whether a user has typed the command.
    :raises gdb.GdbError: any error, in one line; the command has failed.
    """
    try:
        arguments = parse_line(command, text, gdb.string_to_argv)
        if command.has_colours:
            lines = _RUNS[command](plugin, arguments._replace(coloured=_has_colours(from_tty)))
        else:
            lines = list(map(printable, _RUNS[command](plugin, arguments)))
        gdb.write("".join(f"{line}\n" for line in lines))
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


def _has_colours(from_tty: bool) -> bool:
    """Return whether GDB itself would write colours: to a terminal, and not to a log or for a program."""
    return from_tty and bool(gdb.parameter("style enabled")) and not gdb.parameter("logging enabled") and os.isatty(1)


def _stacks(plugin: Plugin) -> Stacks:
    """Return the object that reads stacks."""
    engine = plugin.engine()
    return Stacks(engine.unwinder, engine.session)


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


def _status(plugin: Plugin, _arguments: Arguments) -> Sequence[str]:
    """Return the lines of the table."""
    try:
        unwinding = _stacks(plugin).unwinding()
    except gdb.error as error:
        reason = f"no stack to unwind: {error}"
        program = path_of(gdb.current_progspace())
        return output.status_without_process(plugin.settings, _DEBUGGER, reason, program)
    precedence = unwinding.plans.planner(gdb.newest_frame()).precedence_by_tables()
    lines = output.status_lines(unwinding.process.modules, plugin.settings, _DEBUGGER, precedence)
    if not plugin.engine().unwinder.enabled:
        lines.insert(2, "the unwinder is disabled, GDB's own unwinds all frames; see 'help enable unwinder'")
    return lines


def _backtrace(plugin: Plugin, arguments: Arguments) -> Sequence[str]:
    """Return the stacks."""
    if arguments.context is not None:
        return output.backtrace_lines([_stacks(plugin).of_context(arguments.context, arguments.limit)], False)
    every = commands.ALL in arguments.options
    shown = [(thread, _stacks(plugin).by_sframe(arguments.limit)) for thread in _threads(every)]
    return output.backtrace_lines(
        [stack for _, stack in shown], every and any(thread is not None for thread, _ in shown)
    )


def _compare(plugin: Plugin, arguments: Arguments) -> Sequence[str]:
    """Return the comparisons."""
    from sframe_unwind.debugger.code_judge import CodeJudge

    judge, stacks = CodeJudge(), _stacks(plugin)
    threads = _threads(commands.ALL in arguments.options)
    compared = [stacks.comparison(arguments.limit).judged(judge.rows_of(stacks.code())) for _ in threads]
    return output.compare_lines(compared, arguments)


def _explain(plugin: Plugin, arguments: Arguments) -> Sequence[str]:
    """Return the explanation."""
    from gdb_plugin.commands.contexts import address_in
    from gdb_plugin.process.functions import place_of
    from sframe_unwind.debugger.code_judge import code_lines
    from sframe_unwind.debugger.code_registers import register_lines
    from sframe_unwind.report.explain import explain

    stacks = _stacks(plugin)
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


def _disassemble(plugin: Plugin, arguments: Arguments) -> Sequence[str]:
    """Return the instructions with the rules."""
    from gdb_plugin.commands.disassembling import disassembled

    with_source, address = source_and_address(arguments)
    return disassembled(_stacks(plugin), address, with_source, arguments.coloured)


def _tasks(plugin: Plugin, arguments: Arguments) -> Sequence[str]:
    """Return the tasks of a kernel."""
    from sframe_unwind.kernel.tasks import BLOCKED

    state = BLOCKED if commands.BLOCKED in arguments.options else ""
    return _stacks(plugin).of_tasks(" ".join(arguments.rest), state)


_RUNS: dict[commands.Command, _Run] = {
    commands.STATUS: _status,
    commands.BACKTRACE: _backtrace,
    commands.COMPARE: _compare,
    commands.EXPLAIN: _explain,
    commands.DISASSEMBLE: _disassemble,
    commands.TASKS: _tasks,
}
