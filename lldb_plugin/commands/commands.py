"""The commands in LLDB; their help, arguments and output are shared with GDB's."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Callable

import lldb

from lldb_plugin.commands import expressions, program_file, stacks
from lldb_plugin.commands.contexts import Contexts
from lldb_plugin.commands.conversion import Conversions
from lldb_plugin.commands.disassembling import disassembled
from lldb_plugin.lifecycle.engine import Engine
from lldb_plugin.process import modules, places
from lldb_plugin.version import lacks
from sframe_unwind.debugger import commands, output
from sframe_unwind.debugger.arguments import Arguments, UsageError, parse_line, source_and_address
from sframe_unwind.debugger.code_judge import CodeJudge, code_lines
from sframe_unwind.debugger.commands import ALL
from sframe_unwind.debugger.modes import OFF, ON
from sframe_unwind.debugger.settings import changed
from sframe_unwind.errors import SFrameError
from sframe_unwind.kernel.tasks import BLOCKED
from sframe_unwind.report import explain
from sframe_unwind.report.terminal import printable

_STOPPED = (lldb.eStateStopped, lldb.eStateCrashed, lldb.eStateSuspended)
_GONE = (lldb.eStateInvalid, lldb.eStateUnloaded, lldb.eStateExited, lldb.eStateDetached)

_Run = Callable[[lldb.SBExecutionContext, Arguments], Sequence[str]]
"""Returns the lines to print."""


class Commands:
    """The commands of all debuggers."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._session = engine.session
        self._conversions = Conversions(engine.report)
        self._runs: dict[commands.Command, _Run] = {
            **{setting: partial(self._set, setting) for setting in commands.SETTINGS},
            commands.STATUS: self._status,
            commands.BACKTRACE: self._backtrace,
            commands.COMPARE: self._compare,
            commands.EXPLAIN: self._explain,
            commands.DISASSEMBLE: self._disassemble,
            commands.TASKS: self._tasks,
            commands.CONVERT: self._convert,
        }

    def run(
        self, command: commands.Command, text: str, context: lldb.SBExecutionContext, result: lldb.SBCommandReturnObject
    ) -> None:
        """Run a command; an error becomes one line, and the command has failed.

        :param text: the rest of the line.
        """
        try:
            arguments = parse_line(command, text, str.split)
            if command.has_colours:
                arguments = arguments._replace(coloured=context.GetTarget().GetDebugger().GetUseColor())
            lines = self._runs[command](context, arguments)
            result.AppendMessage("\n".join(lines if command.has_colours else map(printable, lines)))
            result.SetStatus(lldb.eReturnStatusSuccessFinishResult)
        except SFrameError as error:
            result.SetError(f"sframe: {error}")
        except Exception as error:  # noqa: BLE001  # a traceback does not help the user
            result.SetError(f"sframe: {type(error).__name__}: {error}")

    def _set(self, setting: commands.Setting, _context: lldb.SBExecutionContext, arguments: Arguments) -> Sequence[str]:
        """Show or set a setting."""
        for word in arguments.rest:
            if word not in setting.values:
                raise UsageError(f"{setting.name} {word!r} is not known; {setting.usage_line()}")
            value = word == ON if setting.is_switch else word
            self._engine.apply(changed(self._session.settings, setting.name, value))
        value = getattr(self._session.settings, setting.name)
        return [f"{setting.name} {(ON if value else OFF) if setting.is_switch else value}"]

    def _status(self, context: lldb.SBExecutionContext, _arguments: Arguments) -> Sequence[str]:
        """Return the lines of the table."""
        debugger = f"{lldb.SBDebugger.GetVersionString().splitlines()[0]}; {lacks()}"
        try:
            process = self._session.process(_stopped(context))
        except SFrameError as error:
            program = context.GetTarget().GetExecutable().fullpath or ""
            return output.status_without_process(self._session.settings, debugger, str(error), program)
        lines = output.status_lines(process.modules, self._session.settings, debugger, process.precedence)
        missing = modules.without_file(context.GetTarget())
        if missing:
            lines.append(f"LLDB does not find the files of these, so their SFrame is not known: {', '.join(missing)}")
        return [*lines, *self._conversions.status_lines(context.GetTarget())]

    def _backtrace(self, context: lldb.SBExecutionContext, arguments: Arguments) -> Sequence[str]:
        """Return the stacks."""
        if arguments.context is not None:
            (thread,) = _threads(context, arguments)
            saved = Contexts(context, stacks.take(self._session, thread, 1))
            return output.backtrace_lines([saved.stack(arguments.context, arguments.limit)], titled=False)
        shown = (
            stacks.by_sframe(stacks.take(self._session, thread, arguments.limit), arguments.limit)
            for thread in _threads(context, arguments)
        )
        return output.backtrace_lines(shown, titled=ALL in arguments.options)

    def _compare(self, context: lldb.SBExecutionContext, arguments: Arguments) -> Sequence[str]:
        """Return the comparisons."""
        judge = CodeJudge()
        compared = []
        for thread in _threads(context, arguments):
            snapshot = stacks.take(self._session, thread, arguments.limit)
            found = stacks.comparison(snapshot, arguments.limit)
            compared.append(found.judged(judge.rows_of(stacks.code(snapshot))))
        return output.compare_lines(compared, arguments)

    def _explain(self, context: lldb.SBExecutionContext, arguments: Arguments) -> Sequence[str]:
        """Return the explanation."""
        if arguments.rest and not _has_process(context):
            code = program_file.code(context.GetTarget())
            address = expressions.address_of(context, arguments.rest[0])
            name = program_file.description(context.GetTarget(), code.modules, address)
            return [*explain.explain(code.modules, address, name, None), *code_lines(code, address)]
        (thread,) = _threads(context, arguments)
        snapshot = stacks.take(self._session, thread)
        if arguments.context is not None:
            address, frame = Contexts(context, snapshot).explained(arguments.context)
        elif arguments.rest:
            address, frame = expressions.address_of(context, arguments.rest[0]), None
        else:
            index = stacks.selected_frame(context, thread).GetFrameID()
            address, frame = stacks.explained(snapshot, index)
        lines = explain.explain(snapshot.process.modules, address, stacks.describe(snapshot, address), frame)
        return [*lines, *code_lines(stacks.code(snapshot), address)]

    def _disassemble(self, context: lldb.SBExecutionContext, arguments: Arguments) -> Sequence[str]:
        """Return the listing of a function."""
        target = context.GetTarget()
        with_source, expression = source_and_address(arguments)
        listed = partial(disassembled, target, with_source=with_source, coloured=arguments.coloured)
        if expression and not _has_process(context):
            code = program_file.code(target)
            address = expressions.address_of(context, expression)
            return listed(places.in_file(target), code, pc=address, frame=None)
        (thread,) = _threads(context, arguments)
        snapshot = stacks.take(self._session, thread)
        selected = stacks.selected_frame(context, thread)
        index, pc = selected.GetFrameID(), selected.GetPC()
        frame = None
        if not expression or (address := expressions.address_of(context, expression)) == pc:
            address, here = stacks.explained(snapshot, index)
            frame = pc, here
        return listed(places.in_process(target), stacks.code(snapshot), pc=address, frame=frame)

    def _tasks(self, context: lldb.SBExecutionContext, arguments: Arguments) -> Sequence[str]:
        """Return the tasks with their stacks."""
        (thread,) = _threads(context, arguments)
        state = BLOCKED if commands.BLOCKED in arguments.options else ""
        return Contexts(context, stacks.take(self._session, thread, 1)).of_tasks(" ".join(arguments.rest), state)

    def _convert(self, context: lldb.SBExecutionContext, arguments: Arguments) -> Sequence[str]:
        """Return the result for each module."""
        return self._conversions.convert(context.GetTarget(), "".join(arguments.rest))


def _has_process(context: lldb.SBExecutionContext) -> bool:
    """Return whether there is a process, stopped or running."""
    process = context.GetProcess()
    return bool(process.IsValid() and process.GetState() not in _GONE)


def _stopped(context: lldb.SBExecutionContext) -> lldb.SBProcess:
    process = context.GetProcess()
    if process.IsValid() and process.GetState() in _STOPPED:
        return process
    running = ": it is running, 'process interrupt' stops it" if _has_process(context) else ""
    raise SFrameError(f"no stopped process{running}")


def _threads(context: lldb.SBExecutionContext, arguments: Arguments) -> list[lldb.SBThread]:
    process = _stopped(context)
    if ALL in arguments.options:
        return list(process)
    thread = context.GetThread() if context.GetThread().IsValid() else process.GetSelectedThread()
    if not thread.IsValid():
        raise SFrameError("no thread is selected")
    return [thread]
