"""The commands; what they print is the core's."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import lldb

from lldb_plugin import plugin, stacks
from lldb_plugin.session import MODES, SESSION
from sframe_unwind import __version__
from sframe_unwind.errors import SFrameError
from sframe_unwind.report import compare, explain, stack, status
from sframe_unwind.report.terminal import printable

_STANDING = (lldb.eStateStopped, lldb.eStateCrashed, lldb.eStateSuspended)


class _Command:
    """A command below ``sframe``: its docstring is its help, the last line of it the usage."""

    name = ""
    options: tuple[str, ...] = ()
    positional = 0

    def __init__(self, debugger: lldb.SBDebugger, internal_dict: dict[str, Any]) -> None:
        pass

    def get_short_help(self) -> str:
        """Return the line for the list of commands."""
        return (self.__doc__ or "").partition("\n")[0]

    def get_long_help(self) -> str:
        """Return the help."""
        return "\n".join(line.strip() for line in (self.__doc__ or "").splitlines())

    def __call__(
        self,
        debugger: lldb.SBDebugger,
        command: str,
        context: lldb.SBExecutionContext,
        result: lldb.SBCommandReturnObject,
    ) -> None:
        """Run the command; whatever it meets becomes one line, and the command has failed."""
        try:
            lines = self.run(context, *self._parse(command))
            result.AppendMessage("\n".join(map(printable, lines)))
            result.SetStatus(lldb.eReturnStatusSuccessFinishResult)
        except SFrameError as error:
            result.SetError(f"sframe: {error}")
        except Exception as error:  # noqa: BLE001  # a traceback is no use to the user
            result.SetError(f"sframe: {type(error).__name__}: {error}")

    def run(self, context: lldb.SBExecutionContext, options: set[str], words: list[str]) -> Sequence[str]:
        """Return the lines to print."""
        raise NotImplementedError

    def _parse(self, command: str) -> tuple[set[str], list[str]]:
        words = command.split()
        options = {word for word in words if word in self.options}
        rest = [word for word in words if word not in options]
        if len(rest) > self.positional or any(word.startswith("-") for word in rest):
            raise SFrameError(self.usage())
        return options, rest

    def usage(self) -> str:
        """Return the line that says what the command takes."""
        return self.get_long_help().rstrip().rpartition("\n")[2]


def _stopped(context: lldb.SBExecutionContext) -> lldb.SBProcess:
    process = context.GetProcess()
    if not process.IsValid() or process.GetState() not in _STANDING:
        raise SFrameError("no stopped process")
    return process


def _threads(context: lldb.SBExecutionContext, every: bool) -> list[lldb.SBThread]:
    process = _stopped(context)
    if every:
        return list(process)
    thread = context.GetThread() if context.GetThread().IsValid() else process.GetSelectedThread()
    if not thread.IsValid():
        raise SFrameError("no thread is selected")
    return [thread]


class Mode(_Command):
    """Show or set which frames are unwound from SFrame.

    always (the default): every frame that SFrame covers; fallback: those where the module has no DWARF CFI;
    off: none, LLDB's own unwinder does it all.
    Usage: sframe mode [always | fallback | off]
    """

    name = "mode"
    positional = 1

    def run(self, context: lldb.SBExecutionContext, options: set[str], words: list[str]) -> Sequence[str]:
        """Show or set the mode."""
        if words:
            if words[0] not in MODES:
                raise SFrameError(f"mode {words[0]!r} is not known; {self.usage()}")
            plugin.set_mode(words[0])
        return [f"mode {SESSION.mode}"]


class Status(_Command):
    """Show which modules have SFrame data, and of which kind.

    For each module: where its section is, version, ABI, number of functions, flags, and how much of its code the
    functions cover.
    Usage: sframe status
    """

    name = "status"

    def run(self, context: lldb.SBExecutionContext, options: set[str], words: list[str]) -> Sequence[str]:
        """Return the table."""
        version = lldb.SBDebugger.GetVersionString().splitlines()[0]
        about = [f"sframe-unwind {__version__}, {version}; {plugin.lacks()}"]
        try:
            process = SESSION.process(_stopped(context))
        except SFrameError as error:
            return [*about, f"mode {SESSION.mode}", str(error)]
        lines = status.to_text(process.modules.modules, SESSION.mode, about, process.arch)
        if process.modules.run_time is not None:
            lines += process.modules.run_time.describe()
        return lines


class Backtrace(_Command):
    """Show the stack that SFrame gives, whatever the mode, and why it ends.

    Each frame names the unwinder that found its caller: 'sframe', or 'lldb' where SFrame has no data.
    Inlined functions are left out.  With N, the innermost N frames; with -all, every thread.
    Usage: sframe backtrace [N] [-all]
    """

    name = "backtrace"
    options = ("-all",)
    positional = 1

    def run(self, context: lldb.SBExecutionContext, options: set[str], words: list[str]) -> Sequence[str]:
        """Return the stacks."""
        limit = None
        if words:
            if not words[0].isdigit() or not int(words[0]):
                raise SFrameError(f"the number of frames is {words[0]!r}, expected 1 or more; {self.usage()}")
            limit = int(words[0])
        lines: list[str] = []
        for thread in _threads(context, "-all" in options):
            shown = stacks.by_sframe(stacks.take(thread), limit)
            lines += [*([shown.title] if options else []), *stack.to_text(shown)]
        return lines


class Compare(_Command):
    """Compare the stack that SFrame gives with LLDB's own, frame by frame: pc, CFA and frame pointer.

    The last line is the verdict.  With -all, every thread; with --json, as JSON.
    Usage: sframe compare [-all] [--json]
    """

    name = "compare"
    options = ("-all", "--json")

    def run(self, context: lldb.SBExecutionContext, options: set[str], words: list[str]) -> Sequence[str]:
        """Return the comparisons."""
        comparisons = [stacks.comparison(stacks.take(thread)) for thread in _threads(context, "-all" in options)]
        if "--json" in options:
            return [json.dumps({"threads": [comparison.to_json() for comparison in comparisons]})]
        lines: list[str] = []
        for comparison in comparisons:
            lines += [*([comparison.native.title] if options else []), *compare.to_text(comparison)]
        return lines


class Explain(_Command):
    """Explain what SFrame says of an address: function, row, the rule in words, and the values that it gives.

    ADDRESS is a number or an expression; without it, the selected frame is explained.
    Usage: sframe explain [ADDRESS]
    """

    name = "explain"

    def _parse(self, command: str) -> tuple[set[str], list[str]]:
        expression = command.strip()
        return super()._parse(command) if expression.startswith("--") else (set(), [expression] if expression else [])

    def run(self, context: lldb.SBExecutionContext, options: set[str], words: list[str]) -> Sequence[str]:
        """Return the explanation."""
        (thread,) = _threads(context, every=False)
        taken = stacks.take(thread)
        if words:
            pc, here = _address(context, words[0]), None
        else:
            pc, here = stacks.selected(taken)
        return explain.explain(taken.process.modules, pc, stacks.describe(taken, pc), here)


def _address(context: lldb.SBExecutionContext, text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        frame = context.GetFrame()
        value = (frame if frame.IsValid() else context.GetTarget()).EvaluateExpression(f"(unsigned long)({text})")
        if not value.IsValid() or not value.GetError().Success():
            raise SFrameError(f"{text!r} is no address: {_reason(value.GetError().GetCString() or '')}") from None
        # LLDB before 15 cannot take signatures off.
        return int(value.GetValueAsAddress() if hasattr(value, "GetValueAsAddress") else value.GetValueAsUnsigned())


def _reason(complaint: str) -> str:
    """Return the one line of the compiler's complaint that says what is wrong."""
    found = re.search(r"error: (?:<.*?>(?::\d+)*: )?(?!.*error: )(.*)", complaint)
    return found[1] if found else " ".join(complaint.split())


COMMANDS = (Mode, Status, Backtrace, Compare, Explain)
