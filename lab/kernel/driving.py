"""Runs commands in debuggers at a machine, and returns their output."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from lab.kernel.machine import Machine, run

DEBUGGERS = ("gdb-18", "gdb-13", "lldb")
MARK = "=====", "-----"
WORDS = ("next", "next", "step", "next", "finish", "next")
UNTIL = ("until", "until")
"""Only GDB has this command without a line number."""
WHERE = "python f = gdb.selected_frame(); print('at', f.name(), f.find_sal().line)"


def at_stop(
    name: str, machine: Machine, function: str | None, *commands: str, first: tuple[str, ...] = ()
) -> list[str]:
    """Return a debugger's output for each command at a stop.

    :param function: function in which to stop; ``None``: stop at any place.
    :param first: commands for the debugger directly after it has connected.
    """
    marked = [line for command in commands for line in (_echo(name), command)]
    if name == "lldb":
        stop = [f"breakpoint set -H -N here -n {function}", "continue", "breakpoint delete here"]
    else:
        stop = [f"thbreak {function}", "continue"]
    said = run(script(name, machine, *first, *(stop if function else ()), *marked, _echo(name)))
    parts = re.split(rf"^(?:\(lldb\) script print.*\n)?{''.join(MARK)}\n", said, flags=re.MULTILINE)
    assert len(parts) == len(commands) + 2, said[-3000:]
    return parts[1:-1]


def script(name: str, machine: Machine, *commands: str) -> list[str]:
    """Return the command line of a debugger that connects to a machine, runs commands, and disconnects."""
    if name == "lldb":
        program = [str(Path(sys.executable).with_name("lldb")), "--no-lldbinit", "--batch"]
        settings = ["settings set plugin.process.gdb-remote.packet-timeout 60", "settings set stop-line-count-before 0"]
        option, connect = "-o", f"gdb-remote 127.0.0.1:{machine.port}"
    else:
        path = str(Path(sys.executable).with_name("gdb")) if name == "gdb-18" else shutil.which("gdb-multiarch")
        assert path, "gdb-multiarch is not installed"
        program = [path, "-nx", "-q", "-batch"]
        settings = ["set pagination off", "set width 0", "set confirm off", "set print frame-arguments all"]
        option, connect = "-ex", f"target remote 127.0.0.1:{machine.port}"
    lines = [*settings, connect, *commands, "detach"]
    return [*program, *(part for line in lines for part in (option, line)), str(machine.built.vmlinux)]


def _echo(name: str) -> str:
    code = f"print('{MARK[0]}' + '{MARK[1]}', flush=True)"
    return f"script {code}" if name == "lldb" else f"python {code}"


def frames(name: str, bt: str) -> list[str]:
    """Return the frames of the debugger's own ``bt``: each with function and arguments, without number and place."""
    if name == "lldb":
        found = re.findall(r"frame #\d+: (0x[0-9a-f]+ vmlinux[^`]*`.*?)(?: at \S+)?(?: \[.*)?$", bt, re.MULTILINE)
    else:
        found = re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in )?(.*?\))(?: at .*)?$", bt, re.MULTILINE)
    return [re.sub(r' ".*?"(?:\.\.\.)?', "", frame) for frame in found]


def hits(name: str, machine: Machine, *first: str) -> list[str]:
    """Return the place of the kernel at three stops at a breakpoint with a condition on an argument, and the argument.

    :param first: earlier commands for the debugger.
    """
    if name == "lldb":
        breakpoint_ = "breakpoint set -H -n vfs_read -c 'count == 256'"
        shown, delete = "expression -f d -- count", "breakpoint delete -f"
    else:
        breakpoint_, shown, delete = "hbreak vfs_read if count == 256", "print count", "delete"
    stops = [part for _ in range(3) for part in ("continue", _where(name), shown)]
    answers = at_stop(name, machine, "do_task_stat", *first, breakpoint_, *stops, delete)[len(first) + 1 : -1]
    counts = [re.search(r"\$\d+ = (\d+)", one) for one in answers[2::3]]
    assert all(counts), answers
    return [f"{place} {count[1]}" for place, count in zip(_placed(name, machine, answers[1::3]), counts) if count]


def _where(name: str) -> str:
    return "frame info" if name == "lldb" else WHERE


def _placed(name: str, machine: Machine, answers: list[str]) -> list[str]:
    pattern = rf"{re.escape(machine.built.vmlinux.name)}`(\w+).* at \S+?:(\d+)" if name == "lldb" else r"at (\w+) (\d+)"
    found = [re.search(pattern, one) for one in answers]
    assert all(found), answers
    return [f"{one[1]}:{one[2]}" for one in found if one]


def places(name: str, machine: Machine, function: str, *first: str) -> list[str]:
    """Return the place where each of some commands that drive the kernel ends.

    :param function: function in which it first stops.
    :param first: commands for the debugger there.
    """
    words = WORDS if name == "lldb" else (*WORDS, *UNTIL)
    commands = [part for word in words for part in (word, _where(name))]
    answers = at_stop(name, machine, function, *first, *commands)[len(first) :]
    return _placed(name, machine, answers[1::2])
