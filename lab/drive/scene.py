"""The setting of a session: a debugger, a program that is not running yet, and the commands for them."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from shlex import quote

from lab.drive import gdb_commands, lldb_commands
from lab.drive.building import FOLDER
from lab.drive.channel import OUTPUT, Channel
from lab.drive.debuggers import Debugger
from lab.drive.menu import Lines, State
from lab.drive.programs import Build
from tests.samples.catalogue import ABIS
from tests.waiting import listens, wait_until

_PROCESSORS = len(os.sched_getaffinity(0))
_MAY_RESERVE_MUCH = resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY
FIXED_MEMORY = ("-R", "0x10000000000" if _MAY_RESERVE_MUCH else "0x40000000")
"""Options of QEMU: a reserved range for the program.  Else it gets what QEMU 10's own threads leave at that moment."""


class Scene:
    """A debugger on a program of this machine or of an emulated one."""

    def __init__(self, debugger: Debugger, build: Build, executable: Path, terminal: bool = False) -> None:
        self.debugger = debugger
        self.build = build
        self.executable = executable
        self.terminal = terminal
        self.can_start_again = build.abi == "amd64"

    def first_lines(self) -> Sequence[str]:
        """Return the lines to type before all others."""
        return self.debugger.first_lines(self.terminal)

    def start(self, rng: random.Random) -> Lines:
        """Return the lines that bring the program to its first stop."""
        start = gdb_commands.start if self.debugger.is_gdb else lldb_commands.start
        return start(self.build, arguments(self.build), rng)

    def choose(self, rng: random.Random, state: State) -> Lines:
        """Return the next command, or a few that belong together."""
        choose = gdb_commands.choose if self.debugger.is_gdb else lldb_commands.choose
        return choose(rng, state, self.build)

    def opened(self, mode: str) -> AbstractContextManager[Channel]:
        """Open the debugger, with the plugin in a mode unless that is `WITHOUT`; end it and the program afterwards."""
        return session(self.debugger, self.build, self.executable, mode, self.terminal)


def arguments(build: Build) -> str:
    """Return the program's command line for a shell, without the program."""
    words = [quote(str(FOLDER / word[1:])) if word.startswith("@") else word for word in build.program.arguments]
    standard_input = build.program.standard_input
    words += ["<", quote(str(FOLDER / standard_input)) if standard_input else "/dev/null", ">", OUTPUT]
    return " ".join(words)


@contextlib.contextmanager
def session(debugger: Debugger, build: Build, executable: Path, mode: str, terminal: bool = False) -> Iterator[Channel]:
    """Yield a debugger on a program that is not running yet; end both afterwards."""
    # On one processor, threads take turns, and with this policy none interrupts another.
    processor = str(executable.stat().st_ino % _PROCESSORS)
    pinned = ["taskset", "-c", processor, "chrt", "-b", "0"] if build.program.threads else []
    command = [*pinned, *debugger.command(executable, mode, build.abi)]
    channel = Channel(command, debugger.environment(), terminal)
    emulator = None
    try:
        if build.abi != "amd64":
            emulator = _emulator(build, executable, channel.folder)
        yield channel
    finally:
        if emulator is not None:
            emulator.kill()
            emulator.wait()
        channel.close()


def _emulator(build: Build, executable: Path, folder: Path) -> subprocess.Popen[bytes]:
    """Start an emulator that waits for GDB; its own addresses, which affect the program's, are not randomised."""
    words = ABIS[build.abi].emulator
    command = ["setarch", "-R", words[0], *FIXED_MEMORY, "-seed", "1", "-g", "gdb-socket", *words[1:]]
    with (folder / OUTPUT).open("wb") as output:
        process = subprocess.Popen(
            [*command, str(executable)], cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.DEVNULL
        )
    wait_until(lambda: process.poll() is not None or listens(process.pid), "the emulator")
    return process
