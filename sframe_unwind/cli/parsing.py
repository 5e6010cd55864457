"""The parser of the command line."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import NoReturn

from sframe_unwind.cli.status import CANNOT

_COLUMNS = 80
"""Width of the help where the terminal does not tell its own."""


class _Parser(argparse.ArgumentParser):
    """A parser that reports an error in one line."""

    def parse_known_args(  # type: ignore[override]  # typeshed overloads it by the type of the namespace
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse arguments; the message about an unknown argument names the command.

        argparse lets the parser of the whole command line report such an argument, and that message names no command.
        """
        parsed, unknown = super().parse_known_args(args, namespace or argparse.Namespace())
        # argparse fills an argument of any number of words only from those before the first option.
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


def parser_of(commands: Mapping[str, ModuleType], name: str, version: str) -> argparse.ArgumentParser:
    """Return the parser of some commands.

    :param commands: the module of each.
    :param name: name of the program.
    """
    width = _columns() - 2
    program, parsers = _program(name, version, width)
    for word, module in commands.items():
        summary, _, rest = (module.__doc__ or "").partition("\n")
        command = parsers.add_parser(
            word,
            help=summary[:1].lower() + summary[1:].rstrip("."),
            description=f"{summary}\n{rest}".strip(),
            epilog=f"examples:\n{module.EXAMPLES}",
            formatter_class=partial(argparse.RawDescriptionHelpFormatter, width=width),
            allow_abbrev=False,
        )
        module.add_arguments(command)
    return program


def overview(summaries: Mapping[str, str], name: str, version: str) -> argparse.ArgumentParser:
    """Return the parser of a command line without a command, which prints the help or reports an error.

    :param summaries: what each command does, in a few words.
    :param name: name of the program.
    """
    program, parsers = _program(name, version, _columns() - 2)
    for word, summary in summaries.items():
        parsers.add_parser(word, help=summary)
    return program


def _program(
    name: str, version: str, width: int
) -> tuple[argparse.ArgumentParser, argparse._SubParsersAction[_Parser]]:
    """Return the parser of the program, and what adds commands to it.

    :param width: of the help, in columns.  Without it, each argument that is added makes argparse import
        :mod:`shutil`, which takes 2 ms.
    """
    program = _Parser(
        prog=name,
        description="Inspect SFrame data, and unwind stacks with it.",
        epilog=f"{name} COMMAND --help describes a command.  Exit status 2 means that a command failed, "
        "70 that a bug of this program made it fail.",
        formatter_class=partial(argparse.HelpFormatter, width=width),
        allow_abbrev=False,
    )
    program.add_argument("-V", "--version", action="version", version=f"{name} {version}")
    # Given the name of the program, argparse does not format a usage line to find it, which would import much.
    return program, program.add_subparsers(prog=name, dest="command", metavar="COMMAND", required=True)


def _columns() -> int:
    """Return the width of the terminal, as :func:`shutil.get_terminal_size` does."""
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isdecimal() and int(wanted):
        return int(wanted)
    with contextlib.suppress(OSError, ValueError):  # it is no terminal, or closed
        return (sys.__stdout__ and os.get_terminal_size(sys.__stdout__.fileno()).columns) or _COLUMNS
    return _COLUMNS
