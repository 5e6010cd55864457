"""The command line.  Each command is a module of this package; this module parses arguments and reports errors.

The module of a command has a docstring (its help text), ``EXAMPLES``, ``add_arguments(parser)``, and ``run(options)``,
which returns the exit status.  :data:`COMMANDS` lists the commands; each is imported when it is needed, since importing
all of them takes longer than most commands run.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import resource
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import NoReturn

from sframe_unwind import __version__, internal_error
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

_NAMES = (
    "dump",
    "lookup",
    "show",
    "verify",
    "lint",
    "convert",
    "annotate",
    "survey",
    "perf",
    "backtrace",
    "gdb",
    "lldb",
    "plugin",
    "doctor",
    "schema",
)
"""The commands, in the order of the help; each is the name of a module of this package."""


class _Commands(Mapping[str, ModuleType]):
    """The module of each command, imported when it is first needed."""

    def __getitem__(self, name: str) -> ModuleType:
        if name not in _NAMES:
            raise KeyError(name)
        return import_module(f"{__name__}.{name}")

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)


COMMANDS = _Commands()

PROGRAM = "sframe-unwind"

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
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return f"{what}: at most {limit} (ulimit -n); fewer processes (-j) need fewer"
    if error.errno in (errno.EAGAIN, errno.ENOMEM):
        return f"cannot start a process: {what}; -j 1 starts none"
    return f"cannot write: {what}"


def _run(arguments: list[str]) -> int:
    if len(arguments) > 1 and arguments[0] in DEBUGGERS and arguments[1:] not in (["-h"], ["--help"]):
        options = argparse.Namespace(arguments=arguments[1:])
        return int(COMMANDS[arguments[0]].run(options))
    if arguments[:1] in (["-V"], ["--version"]):  # the parser would import every command
        print(f"{PROGRAM} {__version__}")
        return DONE
    if arguments[:1] == ["convert"]:
        arguments = COMMANDS["convert"].spelled_out(arguments)
    options = parser(arguments[:1]).parse_args(arguments)
    return int(COMMANDS[options.command].run(options))


class _Parser(argparse.ArgumentParser):
    """A parser that reports an error in one line."""

    def parse_known_args(  # type: ignore[override]  # typeshed overloads it by the type of the namespace
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse arguments, and report one that is not known with the command that does not know it.

        argparse lets the parser of the whole command line report it, which names no command.
        """
        parsed, unknown = super().parse_known_args(args, namespace or argparse.Namespace())
        # argparse takes all words of such an argument from before the first option.
        rest = next((one.dest for one in self._get_positional_actions() if one.nargs == argparse.ZERO_OR_MORE), None)
        if rest is not None and not any(word.startswith("-") for word in unknown):
            setattr(parsed, rest, [*getattr(parsed, rest), *unknown])
            unknown = []
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return parsed, unknown

    def error(self, message: str) -> NoReturn:
        program, _, command = self.prog.partition(" ")
        self.exit(CANNOT, f"{program}: {command + ': ' if command else ''}{message} (try {self.prog} --help)\n")


def parser(wanted: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Return the parser of the command line.

    :param wanted: the first argument: if it is a command, the parser knows no other.
    """
    program = _Parser(
        prog=PROGRAM,
        description="Inspect SFrame data, and unwind stacks with it.",
        epilog="sframe-unwind COMMAND --help describes a command.  Exit status 2 means that a command failed, "
        "70 that a bug of this program made it fail.",
        allow_abbrev=False,
    )
    program.add_argument("-V", "--version", action="version", version=f"{PROGRAM} {__version__}")
    # With its name, the parser need not format a usage to find it, which would import much.
    commands = program.add_subparsers(prog=PROGRAM, dest="command", metavar="COMMAND", required=True)
    for name in wanted if wanted and wanted[0] in _NAMES else _NAMES:
        module = COMMANDS[name]
        summary, _, rest = (module.__doc__ or "").partition("\n")
        command = commands.add_parser(
            name,
            help=summary[:1].lower() + summary[1:].rstrip("."),
            description=f"{summary}\n{rest}".strip(),
            epilog=f"examples:\n{module.EXAMPLES}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        module.add_arguments(command)
    return program


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
