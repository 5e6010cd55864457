"""The command line.  Each command is a module of this package; this module parses arguments and reports errors.

The module of a command has a docstring (its help text), ``EXAMPLES``, ``add_arguments(parser)``, and ``run(options)``,
which returns the exit status.  :data:`COMMANDS` lists the commands; each is imported when it is needed, since importing
all of them takes longer than most commands run.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from types import ModuleType

from sframe_unwind import TYPE_CHECKING, __version__, internal_error
from sframe_unwind.cli.own_process import own_process
from sframe_unwind.cli.status import (
    CANNOT,
    DONE,
    INTERNAL_ERROR,
    INTERRUPTED,
    OUT_OF_MEMORY,
    PIPE_CLOSED,
    complain,
)
from sframe_unwind.errors import SFrameError

if TYPE_CHECKING:  # --version needs no parser
    import argparse

SUMMARIES = {
    "dump": "show the contents of an SFrame section",
    "lookup": "find the function and the row for addresses",
    "show": "show functions: each instruction with the rules of SFrame, of DWARF CFI and of the code",
    "verify": "compare SFrame with the DWARF CFI or ORC of the same file, or all with its machine code",
    "lint": (
        "tell whether a consumer would load the SFrame of a file, which functions it would lose, and which rules"
        " it breaks"
    ),
    "convert": "make SFrame from DWARF CFI or another version of SFrame, or DWARF CFI from SFrame",
    "annotate": "write the .cfi_* directives for functions in assembly that have none, from their machine code",
    "survey": "survey whole distributions: sizes, coverage, correctness, and why code is left out",
    "perf": "unwind the samples of a recording by SFrame, by frame pointers and by DWARF CFI",
    "backtrace": (
        "show the stacks of all threads of a core file, a running process or the crash dump of a kernel, without a"
        " debugger"
    ),
    "gdb": "start GDB with the plugin loaded",
    "lldb": "start LLDB with the plugin loaded",
    "plugin": "print the line that loads the plugin, for a debugger's init file",
    "doctor": "try what works on this machine, and name a remedy for what does not",
    "schema": "print the JSON schema of a command's output",
}
"""The summary of each command, in the order of the help; the name of a command is that of its module in this package.

The module's docstring begins with the same words; they are here as well, so that the help imports no command."""


class _Commands(Mapping[str, ModuleType]):
    """The module of each command, imported when it is first needed."""

    def __getitem__(self, name: str) -> ModuleType:
        if name not in SUMMARIES:
            raise KeyError(name)
        return import_module(f"{__name__}.{name}")

    def __iter__(self) -> Iterator[str]:
        return iter(SUMMARIES)

    def __len__(self) -> int:
        return len(SUMMARIES)


COMMANDS = _Commands()

PROGRAM = "sframe-unwind"

_HELP = ("-h", "--help")

DEBUGGERS = ("gdb", "lldb")
"""Commands that pass all of their arguments to a debugger."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status.

    :param arguments: the command-line arguments without the program name; ``None``: those of this process.
    """
    if arguments is not None:
        return _reported(list(arguments))
    with own_process():
        return _reported(sys.argv[1:])


def _reported(arguments: list[str]) -> int:
    """Run a command, report an exception that ended it, and return the exit status."""
    _prepare_output()
    try:
        status = _run(arguments)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _forget_output()
        return PIPE_CLOSED
    except SFrameError as error:
        complain(str(error))
    except OSError as error:
        _forget_output()
        complain(_why(error))
    except MemoryError:
        complain(OUT_OF_MEMORY)
    except Exception as error:  # noqa: BLE001  # whatever it is, it is a bug of this package
        internal_error.show_traceback(error)
        complain(internal_error.describe(error))
        return INTERNAL_ERROR
    return CANNOT


def _why(error: OSError) -> str:
    """Return the reason for an error that is not about reading: it is about writing the output, or a limit."""
    what = error.strerror or str(error)
    if error.errno in (errno.EMFILE, errno.ENFILE):
        import resource  # few commands reach a limit

        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return f"{what}: at most {limit} (ulimit -n); fewer processes (-j) need fewer"
    if error.errno in (errno.EAGAIN, errno.ENOMEM):
        return f"cannot start a process: {what}; -j 1 starts none"
    return f"cannot write: {what}"


def _run(arguments: list[str]) -> int:
    if len(arguments) > 1 and arguments[0] in DEBUGGERS and (len(arguments) > 2 or arguments[1] not in _HELP):
        from argparse import Namespace

        options = Namespace(arguments=arguments[1:])
        return int(COMMANDS[arguments[0]].run(options))
    if arguments[:1] in (["-V"], ["--version"]):  # the parser would import every command
        print(f"{PROGRAM} {__version__}")
        return DONE
    if arguments[:1] == ["convert"]:
        arguments = COMMANDS["convert"].spelled_out(arguments)
    if not arguments or arguments[0] in _HELP or (not arguments[0].startswith("-") and arguments[0] not in SUMMARIES):
        from sframe_unwind.cli.parsing import overview  # it ends the command

        overview(SUMMARIES, PROGRAM, __version__).parse_args(arguments)
    options = parser(arguments[:1]).parse_args(arguments)
    return int(COMMANDS[options.command].run(options))


def parser(wanted: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Return the parser of the command line.

    :param wanted: the first argument; if it is a command, the parser has only this command.
    """
    from sframe_unwind.cli.parsing import parser_of  # --version needs no parser

    names = wanted if wanted and wanted[0] in SUMMARIES else SUMMARIES
    return parser_of({name: COMMANDS[name] for name in names}, PROGRAM, __version__)


def _prepare_output() -> None:
    """Make stdout and stderr usable, and make them escape characters that they cannot encode."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # the parent process closed it
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123  # never closed
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _forget_output() -> None:
    """Discard the unwritten output, so that the interpreter does not fail again when it flushes stdout at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
