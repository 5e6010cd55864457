"""The commands and the parameter; what they print is the core's."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from typing import Any, Callable

import gdb

from gdb_plugin.session import Session
from gdb_plugin.settings import ALWAYS, MODES
from gdb_plugin.stacks import Stacks
from gdb_plugin.unwinder import SFrameUnwinder
from sframe_unwind import __version__
from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.report import compare, explain, stack, status
from sframe_unwind.report.terminal import printable


def _guarded(invoke: Callable[[Any, str, bool], None]) -> Callable[[Any, str, bool], None]:
    """Turn whatever a command may meet into GDB's own kind of error: one line, and the command has failed."""

    @functools.wraps(invoke)
    def guarded(self: Any, argument: str, from_tty: bool) -> None:
        try:
            invoke(self, argument, from_tty)
        except gdb.GdbError:
            raise
        except gdb.error as error:  # GDB would add that it came from Python
            raise gdb.GdbError(f"sframe: {error}") from error
        except Exception as error:  # a traceback is no use to the user
            raise gdb.GdbError(f"sframe: {type(error).__name__}: {error}") from error

    return guarded


class _Command(gdb.Command):
    """A command below ``sframe``: its docstring is its help, its options complete."""

    name = ""
    options: tuple[str, ...] = ()

    def __init__(self) -> None:
        super().__init__(f"sframe {self.name}", gdb.COMMAND_STACK)

    def complete(self, text: str, word: str | None) -> list[str] | int:
        """Offer the options that are not there yet."""
        if word is None:  # GDB asks first what to break words at
            return int(gdb.COMPLETE_NONE)
        *before, typed = text.split(" ")
        # For GDB a hyphen ends a word, and only what follows it is to be completed.
        broken = len(typed) - len(word)
        return [option[broken:] for option in self.options if option.startswith(typed) and option not in before]

    def parse(self, argument: str, positional: int = 0) -> tuple[set[str], list[str]]:
        """Return the options and the other words.

        :raises gdb.GdbError: an unknown option, or too many words.
        """
        words = gdb.string_to_argv(argument)
        options = {word for word in words if word in self.options}
        rest = [word for word in words if word not in options]
        if len(rest) > positional or any(word.startswith("-") for word in rest):
            raise gdb.GdbError((self.__doc__ or "").strip().splitlines()[-1].strip())
        return options, rest


def _show(lines: Sequence[str]) -> None:
    gdb.write("".join(f"{printable(line)}\n" for line in lines))


def _threads(every: bool) -> Iterator[gdb.InferiorThread | None]:
    """Select each thread in turn, and at the end the one that was selected."""
    selected = gdb.selected_thread()
    if not every or selected is None:
        yield selected
        return
    frame = gdb.selected_frame()
    try:
        for thread in sorted(selected.inferior.threads(), key=lambda thread: int(thread.num)):
            if thread.is_running():  # non-stop: it has no frames
                gdb.write(f"Thread {thread.num} is running\n")
                continue
            thread.switch()
            yield thread
    finally:
        selected.switch()
        if frame.is_valid():
            frame.select()


class SFrame(gdb.Command):
    """Unwind stack frames from SFrame data, and show what it says.

    The mode ('set sframe mode') decides which frames of the backtrace are unwound from SFrame.
    Usage: sframe SUBCOMMAND
    """

    def __init__(self) -> None:
        super().__init__("sframe", gdb.COMMAND_STACK, prefix=True)

    def invoke(self, argument: str, from_tty: bool) -> None:
        """List the subcommands."""
        if argument.strip():
            raise gdb.GdbError(f'Undefined sframe command: "{argument}".  Try "help sframe".')
        gdb.execute("help sframe")


class Status(_Command):
    """Show which modules have SFrame data, and of which kind.

    For each module: where its section is, version, ABI, number of functions, flags, and how much of its code the
    functions cover.
    Usage: sframe status
    """

    name = "status"

    def __init__(self, unwinder: SFrameUnwinder, stacks: Stacks) -> None:
        self._unwinder = unwinder
        self._stacks = stacks
        super().__init__()

    @_guarded
    def invoke(self, argument: str, from_tty: bool) -> None:
        """Run the command."""
        self.parse(argument)
        about = [f"sframe-unwind {__version__}, GDB {gdb.VERSION}; GDB lacks nothing that this needs"]
        try:
            process = self._stacks.process()
        except gdb.error as error:
            _show([*about, f"mode {self._unwinder.settings.mode}", f"no stack to unwind: {error}"])
            return
        lines = status.to_text(process.modules.modules, self._unwinder.settings.mode, about, process.arch)
        if process.run_time is not None:
            lines += process.run_time.describe()
        _show(lines)


class Backtrace(_Command):
    """Show the stack that SFrame gives, whatever the mode, and why it ends.

    Each frame names the unwinder that found its caller: 'sframe', or 'gdb' where SFrame has no data.
    Inlined functions are left out.  With N, the innermost N frames; with -all, every thread.
    Usage: sframe backtrace [N] [-all]
    """

    name = "backtrace"
    options = ("-all",)

    def __init__(self, stacks: Stacks) -> None:
        self._stacks = stacks
        super().__init__()

    @_guarded
    def invoke(self, argument: str, from_tty: bool) -> None:
        """Run the command."""
        options, rest = self.parse(argument, positional=1)
        limit = None
        if rest:
            if not rest[0].isdigit() or not int(rest[0]):
                raise gdb.GdbError(f"sframe backtrace: the number of frames is {rest[0]!r}, expected 1 or more")
            limit = int(rest[0])
        for thread in _threads("-all" in options):
            shown = self._stacks.by_sframe(limit)
            _show([*([shown.title] if options and thread else []), *stack.to_text(shown)])


class Compare(_Command):
    """Compare the stack that SFrame gives with GDB's own, frame by frame: pc, CFA and frame pointer.

    The last line is the verdict.  With -all, every thread; with --json, as JSON.
    Usage: sframe compare [-all] [--json]
    """

    name = "compare"
    options = ("-all", "--json")

    def __init__(self, stacks: Stacks) -> None:
        self._stacks = stacks
        super().__init__()

    @_guarded
    def invoke(self, argument: str, from_tty: bool) -> None:
        """Run the command."""
        options, _ = self.parse(argument)
        comparisons = [self._stacks.comparison() for _ in _threads("-all" in options)]
        if "--json" in options:
            _show([json.dumps({"threads": [comparison.to_json() for comparison in comparisons]})])
            return
        for comparison in comparisons:
            _show([*([comparison.native.title] if options else []), *compare.to_text(comparison)])


class Explain(_Command):
    """Explain what SFrame says of an address: function, row, the rule in words, and the values that it gives.

    ADDRESS is an expression; without it, the selected frame is explained.
    Usage: sframe explain [ADDRESS]
    """

    name = "explain"

    def __init__(self, stacks: Stacks) -> None:
        self._stacks = stacks
        super().__init__()

    def complete(self, text: str, word: str | None) -> int:
        """Complete expressions."""
        return int(gdb.COMPLETE_EXPRESSION)

    @_guarded
    def invoke(self, argument: str, from_tty: bool) -> None:
        """Run the command."""
        process = self._stacks.process()
        if argument.strip():
            value = gdb.parse_and_eval(argument)
            address = value.address if value.type.code == gdb.TYPE_CODE_FUNC else value
            pc, here = int(address) & ADDRESS_MASK, None
        else:
            pc, here = self._stacks.selected()
        name = gdb.format_address(pc).partition(" ")[2] if hasattr(gdb, "format_address") else ""
        name = name or process.run_time_name(pc)
        _show(explain.explain(process.modules, pc, name, here))


class Mode(gdb.Parameter):
    """Which frames are unwound from SFrame."""

    set_doc = "Set which frames are unwound from SFrame."
    show_doc = "Show which frames are unwound from SFrame."
    __doc__ = """always (the default): every frame that SFrame covers.
fallback: those where the module has no DWARF CFI.
off: none; GDB's own unwinders do it all."""

    def __init__(self, unwinder: SFrameUnwinder) -> None:
        self._unwinder = unwinder
        super().__init__("sframe mode", gdb.COMMAND_STACK, gdb.PARAM_ENUM, MODES)
        self.value = ALWAYS

    def get_set_string(self) -> str:
        """Take effect at once, on frames that are already unwound too."""
        self._unwinder.set(self._unwinder.settings._replace(mode=self.value))
        return ""

    def get_show_string(self, value: str) -> str:
        """Return what ``show`` prints."""
        return f"The mode of the SFrame unwinder is {value!r}."


class Strict(gdb.Parameter):
    """Whether SFrame's frames are shown where GDB's own unwinder gives the same ones."""

    set_doc = "Set whether mode 'always' also claims frames for which GDB's own unwinder gives the same caller."
    show_doc = "Show whether mode 'always' also claims frames for which GDB's own unwinder gives the same caller."
    __doc__ = """off (the default): where DWARF CFI says the same as SFrame, the frame is left to GDB's own unwinder,
which knows more registers.
on: every frame that SFrame covers shows what SFrame alone gives."""

    def __init__(self, unwinder: SFrameUnwinder) -> None:
        self._unwinder = unwinder
        super().__init__("sframe strict", gdb.COMMAND_STACK, gdb.PARAM_BOOLEAN)
        self.value = False

    def get_set_string(self) -> str:
        """Take effect at once, on frames that are already unwound too."""
        self._unwinder.set(self._unwinder.settings._replace(strict=bool(self.value)))
        return ""

    def get_show_string(self, value: str) -> str:
        """Return what ``show`` prints."""
        return f"Strict SFrame unwinding is {value}."


def _prefix(name: str, doc: str) -> None:
    type("_Prefix", (gdb.Command,), {"__doc__": doc})(name, gdb.COMMAND_STACK, prefix=True)


def register(unwinder: SFrameUnwinder, session: Session, stacks: Stacks) -> None:
    """Make all commands and the parameter."""
    _prefix("set sframe", "Settings of the SFrame unwinder.")
    _prefix("show sframe", "Show the settings of the SFrame unwinder.")
    SFrame()
    Mode(unwinder)
    Strict(unwinder)
    Status(unwinder, stacks)
    Backtrace(stacks)
    Compare(stacks)
    Explain(stacks)
    gdb.execute("alias sframe bt = sframe backtrace")
