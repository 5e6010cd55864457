"""Describes a session independently of the debugger, and collects the output of each command."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.gdb import driver as gdb
from tests.lldb import debuggers
from tests.lldb import driver as lldb
from tests.missing import absent

DEBUGGERS = ("GDB 18", "GDB 13", "LLDB 22.1", "LLDB 23.1")

_MARK = "-- shown --"


class Words(NamedTuple):
    """A debugger's commands for the actions of a session; any other command is the same in both."""

    stop: str
    run: str
    children: str
    mode: str
    mark: str


_GDB = Words(
    "break sample_stop",
    "run {} > /dev/null",
    "set follow-fork-mode child",
    "set sframe mode {}",
    f"echo \\n{_MARK}\\n",
)
_LLDB = Words(
    "breakpoint set -n sample_stop",
    "process launch -o /dev/null -- {}",
    "settings set target.process.follow-fork-mode child",
    "sframe mode {}",
    f"script print('\\n{_MARK}')",
)


def show(
    name: str, program: Path, argument: str, *commands: str, first: Sequence[str] = (), plugin: bool = True
) -> list[str]:
    """Return the output of the start, and of each command; see :func:`show_all`."""
    return show_all(name, program, argument, *commands, first=first, plugin=plugin)[:-1]


def show_all(
    name: str, program: Path, argument: str, *commands: str, first: Sequence[str] = (), plugin: bool = True
) -> list[str]:
    """Return the output of the start, of each command, and of the debugger's end.

    A crash, a traceback or a hang fails the test.

    :param commands: commands of both debuggers, or keywords of :class:`Words`, such as ``mode off`` and ``children``.
    :param first: commands before the start, in the same form.
    """
    words, run = _debugger(name)
    start = [*(_told(words, command) for command in first), words.stop, words.run.format(argument)]
    typed = [*start, *(_told(words, command) for command in commands)]
    marked = [part for command in typed for part in (command, words.mark)]
    shown = run(program, marked, plugin).split(f"\n{_MARK}")
    assert len(shown) > len(typed), shown[-1]
    ends = "\n".join(shown[len(typed) :])
    return [_without_echo(text) for text in ("\n".join(shown[: len(start)]), *shown[len(start) : len(typed)], ends)]


def _without_echo(text: str) -> str:
    """Return a debugger's output without the commands that LLDB repeats."""
    return "\n".join(line for line in text.strip().splitlines() if not line.startswith("(lldb) "))


def _told(words: Words, command: str) -> str:
    first, _, rest = command.partition(" ")
    if first == "mode":
        return words.mode.format(rest)
    return words.children if command == "children" else command


def _debugger(name: str) -> tuple[Words, Callable[[Path, Sequence[str], bool], str]]:
    kind, _, version = name.partition(" ")
    if kind == "GDB":
        found = gdb.find("pypi" if version == "18" else "system") or absent(f"{name} is not there")

        def in_gdb(program: Path, commands: Sequence[str], plugin: bool) -> str:
            arguments = [part for command in commands for part in ("-ex", command)]
            path = gdb.PLUGIN if plugin else None
            line = gdb.command_line(found, "-batch", *arguments, str(program), plugin=path)
            return gdb.run(line, statuses=(0, 1))

        return _GDB, in_gdb
    path = debuggers.find("22.1" if version == "22.1" else "newest")

    def in_lldb(program: Path, commands: Sequence[str], plugin: bool) -> str:
        load = ("-O", "settings set target.process.stop-on-exec false", *(("-O", lldb.IMPORT) if plugin else ()))
        with tempfile.NamedTemporaryFile("w", suffix=".lldb", encoding="utf-8") as script:
            script.write("".join(f"{command}\n" for command in commands))
            script.flush()
            # By default, LLDB would end with the first command that fails.
            source = f"command source --stop-on-error false --stop-on-continue false {script.name}"
            return lldb.batch(path, *load, "-o", source, str(program), status=None)

    return _LLDB, in_lldb
