"""Sessions of GDB whose commands come from a pipe: it shows its prompt, and what a person would see."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.gdb.driver import PLUGIN, SECONDS, Debugger, check_output, command_line, environment

_PROCESS = re.compile(r"process \d+|Thread 0x[0-9a-f]+ \(LWP \d+\)")


def typed(
    debugger: Debugger,
    executable: Path,
    lines: Sequence[str],
    plugin: bool = True,
    arguments: Sequence[str] = (),
    more: Sequence[str] = (),
) -> str:
    """Return all output of GDB, without numbers of processes.

    :param plugin: whether the plugin is loaded, before the program.
    :param arguments: arguments of the program.
    :param more: other arguments of GDB.
    """
    source = ["-iex", f"source {PLUGIN}"] if plugin else []
    command = command_line(debugger, *source, *more, "--args", str(executable), *arguments, plugin=None)
    done = subprocess.run(
        command,
        input="".join(f"{line}\n" for line in (*lines, "kill")),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=SECONDS,
        check=False,
        env=environment(),
    )
    return _PROCESS.sub("process", check_output(done.stdout))
