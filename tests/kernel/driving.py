"""Commands in debuggers at a machine, and what they print."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from tests.kernel.machine import Machine, run

DEBUGGERS = ("gdb-18", "gdb-13", "lldb")
MARK = "=====", "-----"
WORDS = ("next", "next", "step", "next", "finish", "next")
WHERE = "python f = gdb.selected_frame(); print('at', f.name(), f.find_sal().line)"


def at_stop(
    name: str, machine: Machine, function: str | None, *commands: str, first: tuple[str, ...] = ()
) -> list[str]:
    """Return what a debugger prints for each command at a stop.

    :param function: where to stop; ``None``: where the kernel happens to be.
    :param first: commands as soon as the debugger is connected.
    """
    marked = [line for command in commands for line in (_echo(name), command)]
    if name == "lldb":
        stop = [f"breakpoint set -H -N here -n {function}", "continue", "breakpoint delete here"] if function else []
        script = [
            "settings set plugin.process.gdb-remote.packet-timeout 60",
            "settings set stop-line-count-before 0",
            f"gdb-remote 127.0.0.1:{machine.port}",
            *(*first, *stop, *marked, _echo(name), "detach"),
        ]
        program = [str(Path(sys.executable).with_name("lldb")), "--no-lldbinit", "--batch"]
        arguments = [part for line in script for part in ("-o", line)]
    else:
        stop = [f"tbreak {function}", "continue"] if function else []
        stop = [stop[0].replace("tbreak", "thbreak"), stop[1]] if stop else []
        script = [
            *("set pagination off", "set width 0", "set confirm off", "set print frame-arguments all"),
            *(f"target remote 127.0.0.1:{machine.port}", *first, *stop, *marked, _echo(name), "detach"),
        ]
        path = str(Path(sys.executable).with_name("gdb")) if name == "gdb-18" else shutil.which("gdb-multiarch")
        assert path, "gdb-multiarch is not installed"
        program = [path, "-nx", "-q", "-batch"]
        arguments = [part for line in script for part in ("-ex", line)]
    said = run([*program, *arguments, str(machine.built.vmlinux)])
    parts = re.split(rf"^(?:\(lldb\) script print.*\n)?{''.join(MARK)}\n", said, flags=re.MULTILINE)
    assert len(parts) == len(commands) + 2, said[-3000:]
    return parts[1:-1]


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


def places(name: str, machine: Machine, function: str, *first: str) -> list[str]:
    """Return where each of some commands that drive the kernel ends.

    :param function: where it stops first.
    :param first: commands for the debugger there.
    """
    where = "frame info" if name == "lldb" else WHERE
    commands = [part for word in WORDS for part in (word, where)]
    answers = at_stop(name, machine, function, *first, *commands)[len(first) :]
    pattern = rf"{machine.built.vmlinux.name}`(\w+).* at \S+?:(\d+)" if name == "lldb" else r"at (\w+) (\d+)"
    found = [re.search(pattern, one) for one in answers[1::2]]
    assert all(found), answers
    return [f"{one[1]}:{one[2]}" for one in found if one]
