"""Prints the output of the commands of both plugins.

This is a separate module because a plugin is loaded at every start of a debugger, and mostly prints nothing.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence

from sframe_unwind import __version__
from sframe_unwind.debugger.arguments import Arguments
from sframe_unwind.debugger.commands import ALL, JSON
from sframe_unwind.debugger.settings import Settings
from sframe_unwind.report import compare, stack, status
from sframe_unwind.report.compare import Comparison
from sframe_unwind.report.stack import Stack
from sframe_unwind.unwind.modules import Modules
from sframe_unwind.unwind.precedence import Precedence


def status_lines(
    modules: Modules, settings: Settings, debugger: str, precedence: Precedence | None = None
) -> list[str]:
    """Return the lines of ``sframe status``.

    :param debugger: the debugger's version, and the features that it lacks.
    :param precedence: decides between SFrame and CFI in mode ``auto``; ``None``: unused rows are not counted.
    """
    lines = status.to_text(modules, str(settings), [about(debugger)], precedence if settings.decides else None)
    return lines if modules.run_time is None else [*lines, *modules.run_time.describe()]


def status_without_process(settings: Settings, debugger: str, reason: str, program: str) -> list[str]:
    """Return the lines of ``sframe status`` if there is no stack to unwind.

    :param program: path of the program's file; empty: there is none.
    """
    hint = [f"sframe-unwind dump {shlex.quote(program)}  # shows the SFrame of the program's file"] if program else []
    return [about(debugger), f"mode {settings}", reason, *hint]


def about(debugger: str) -> str:
    """Return the line with the versions of this project and of the debugger."""
    return f"sframe-unwind {__version__}, {debugger}"


def backtrace_lines(stacks: Iterable[Stack], titled: bool) -> list[str]:
    """Return the lines of ``sframe backtrace``.

    :param titled: print a line for each thread before its frames.
    """
    return [line for shown in stacks for line in ([shown.title] if titled else []) + stack.to_text(shown)]


def compare_lines(comparisons: Sequence[Comparison], arguments: Arguments) -> list[str]:
    """Return the lines of ``sframe compare``."""
    if JSON in arguments.options:
        return [json.dumps({"threads": [comparison.to_json() for comparison in comparisons]})]
    titled = ALL in arguments.options
    lines: list[str] = []
    for comparison in comparisons:
        lines += [*([comparison.native.title] if titled else []), *compare.to_text(comparison)]
    return [*lines, compare.summary(comparisons)] if titled else lines
