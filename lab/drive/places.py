"""The place of a session's program: a process, local or at a debug server, or one of several kinds of core files."""

from __future__ import annotations

import random
import resource
import shlex
import subprocess
import sys
from pathlib import Path

from lab.drive import lldb_commands
from lab.drive.channel import OUTPUT
from lab.drive.debuggers import DEBUGGERS, INSIDE, WITHOUT, Debugger
from lab.drive.dimensions import DISTANT, LIVE, REMOTE
from lab.drive.menu import Choice, Lines, State, pick
from lab.drive.programs import Build
from lab.real_programs import ProgramError
from tests.hanging import HANG

SECONDS = HANG
_SAVED = {
    "save-stack": "process save-core --style stack",
    "save-modified-memory": "process save-core --style modified-memory",
    "save-full": "process save-core --style full",
    "minidump": "process save-core --plugin-name=minidump --style stack",
}
_STOPS = 3
"""Number of places from which core files of each kind and program are made."""


def is_core(place: str) -> bool:
    """Return whether the program is in a core file."""
    return place not in (LIVE, REMOTE, DISTANT)


_WITH_GDB = ("setpriv", "--pdeathsig", "KILL")
"""Before a server: one whose GDB ends while the program runs polls the closed connection for ever."""


def remote_start(build: Build, executable: Path, rng: random.Random, is_distant: bool) -> Lines:
    """Return the lines that connect GDB to a server with the program, and bring it to its first stop."""
    delayed = [*_WITH_GDB, sys.executable, str(INSIDE / "delayed.py")] if is_distant else []
    wrapped = ["gdbserver", "--wrapper", "sh", shlex.quote(str(INSIDE / "redirect.sh")), "--", "-", str(executable)]
    server = shlex.join(["exec", *delayed, *_WITH_GDB, *wrapped])
    first = "main" if "main" in build.program.functions else rng.choice(build.program.functions)
    return [f"target remote | {server}", "drive-fix", f"tbreak {first}", "continue"]


def core_start(debugger: Debugger, core: Path, executable: Path) -> Lines:
    """Return the lines that open a core file."""
    if debugger.is_gdb:  # GDB 18 and GDB 13 quote differently in core-file; cd takes the rest of the line
        return [f"cd {core.parent}", f"core-file {core.name}"]
    return [f'target create "{executable}" --core "{core}"']


def look(rng: random.Random, state: State, build: Build, is_gdb: bool) -> Lines:
    """Return random commands for a core file."""
    return pick(_GDB_LOOKS if is_gdb else _LLDB_LOOKS, rng, state, build)


def _frame(word: str, *then: str) -> Choice:
    def chosen(rng: random.Random, state: State, _build: Build) -> Lines:
        return [f"{word} {rng.randrange(max(len(state.get('frames', [])), 1))}", *then]

    return chosen


def _said(*lines: str) -> Choice:
    return lambda _rng, _state, _build: list(lines)


_GDB_LOOKS = (
    (_said("backtrace"), 3),
    (_said("backtrace -full 5"), 2),
    (_frame("frame"), 3),
    (_frame("frame", "info frame", "info registers rip rsp rbx rbp"), 3),
    (_frame("frame", "info locals", "info args"), 3),
    (_frame("frame", "x/3i $pc", "p $sp"), 1),
    (_said("up", "down"), 1),
    (_said("thread apply all backtrace 4"), 1),
    (_said("finish"), 1),
)
_LLDB_LOOKS = (
    (_said("bt"), 3),
    (_said("thread backtrace -e true"), 1),
    (_frame("frame select"), 3),
    (_frame("frame select", "frame variable"), 3),
    (_frame("frame select", "register read rip rsp rbx rbp"), 3),
    (_said("up", "down"), 1),
    (_said("bt all"), 1),
    (_said("frame info"), 1),
)


def core_of(debugger: Debugger, build: Build, executable: Path, place: str, seed: int) -> Path:
    """Return a core file of a kind, from a stop that the seed chooses; it is made once.

    :raises ProgramError: it cannot be made.
    """
    rng = random.Random(f"core {seed % _STOPS}")
    functions = rng.sample(build.program.functions, len(build.program.functions))
    maker = debugger if place in _SAVED else DEBUGGERS["gdb18"]
    name = f"{maker.name}-{place}-{seed % _STOPS}"
    core = executable.parent / name / "core"
    if not core.exists():
        core.parent.mkdir(exist_ok=True)
        said = ""
        for function in functions:  # one is called, and another was inlined
            if maker.is_gdb:
                said = _by_gdb(maker, executable, core, function, place)
            else:
                said = _by_lldb(maker, executable, core, function, _SAVED[place])
            if core.exists():
                return core
        raise ProgramError(f"no core file: {said}")
    return core


def _by_gdb(maker: Debugger, executable: Path, core: Path, function: str, place: str) -> str:
    lines = [f"tbreak {function}", f"starti > {OUTPUT}", "drive-fix", "continue"]
    lines += ["stepi 5", "delete"]
    if place == "gcore":
        lines.append(f"gcore {core.name}")
    else:
        # LLDB 23.1 crashes at a kernel's core file in which the command line is cut off, at 79 characters.
        lines.insert(0, """set exec-wrapper bash -c 'exec -a "${0##*/}" "$0" "$@"'""")
        lines += ["handle SIGABRT nostop pass", "signal SIGABRT"]
    more = ["-batch", *(part for line in lines for part in ("-ex", line))]
    return _make(maker, maker.command(executable, WITHOUT, more=more), core)


def _by_lldb(maker: Debugger, executable: Path, core: Path, function: str, save: str) -> str:
    place = f"breakpoint set {lldb_commands.at(function)}"
    launch = f"process launch -s -i /dev/null -o {OUTPUT} -e /dev/null"
    lines = [launch, "drive-fix", place, "continue", "thread step-inst", "thread step-inst", f"{save} {core.name}"]
    more = ["--batch", *(part for line in lines for part in ("-o", line))]
    return _make(maker, maker.command(executable, WITHOUT, more=more), core)


def _make(maker: Debugger, command: list[str], core: Path) -> str:
    """Run a debugger in the folder of a core file, which it makes; return the end of what it printed.

    :raises ProgramError: it takes too long.
    """

    def unlimited() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    try:
        done = subprocess.run(
            command,
            cwd=core.parent,
            env={**maker.environment(), "DRIVE_STATES": "/dev/null/drive-00000000/states.json"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
            preexec_fn=unlimited,
        )
    except subprocess.TimeoutExpired as error:
        raise ProgramError(f"no core file: {maker.name} takes more than {error.timeout:.0f} s") from None
    made = core if core.exists() else next(iter(sorted(core.parent.glob("core.*"))), core)
    if made.exists() and made != core:
        made.rename(core)
    return f"{done.stdout[-300:]} {done.stderr[-300:]}"
