"""One session: its commands chosen without the plugin, then given to the debugger with it, and the answers compared."""

from __future__ import annotations

import contextlib
import enum
import os
import random
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.drive import gdb_commands, lldb_commands
from tests.drive.building import FOLDER, built
from tests.drive.channel import OUTPUT, Channel, Died, Hang, broken
from tests.drive.debuggers import MODES, STRICT, WITHOUT, Debugger
from tests.drive.programs import BUILDS, Build
from tests.samples.catalogue import ABIS
from tests.waiting import listens, wait_until

LENGTH = 25
"""Commands, or groups of commands that belong together, in a session."""
WITNESSES = 2
"""How often a session in which something differs is run again without the plugin: does it always go the same way?"""
STARTS = 4
"""How often a program is started in a session at most: it may run to its end early."""
PATIENCE = 6.0
"""Seconds that a command may take without the plugin; the session ends before one that takes longer."""
GRACE = 30.0
"""Seconds that a command may take with the plugin, besides eight times what it takes without."""
_SLOWER = 8
_START_SECONDS = 60.0
_PROCESSORS = len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Move:
    """Lines that were typed, and what came of them."""

    lines: tuple[str, ...]
    full: bool
    level: int
    seconds: float
    text: str
    broken: str
    """What no user should see and sees here without the plugin: GDB's `$_caller_matches` fails at nameless frames."""
    state: dict[str, Any]


class Kind(enum.Enum):
    """What is wrong in a session: the table's columns."""

    PLACE = "place"
    """The program is elsewhere, or its stack is another one."""
    CONTENTS = "contents"
    """Variables, registers or texts differ."""
    HANG = "hang"
    DIE = "die"

    @classmethod
    def of(cls, failure: str) -> Kind:
        """The kind of a failure, from the line that describes it."""
        what = failure.partition("): ")[2] or failure
        if " dies: " in failure or "ended by" in failure or "ended with" in failure:
            return cls.DIE
        if " hangs: " in failure or "no answer within" in failure:
            return cls.HANG
        return cls.CONTENTS if what.partition(":")[0] in _CONTENTS else cls.PLACE


@dataclass
class Outcome:
    """What came of a session."""

    build: str
    debugger: str
    seed: int
    commands: int = 0
    seconds: float = 0.0
    dropped: str = ""
    """Why nothing was compared; empty: it was."""
    failures: dict[str, str] = field(default_factory=dict)
    """By mode: what is wrong, in a line."""
    unsteady: dict[str, str] = field(default_factory=dict)
    """By mode: what was wrong once, and not when the session was run again."""
    times: dict[str, float] = field(default_factory=dict)
    """By mode: seconds that all commands together took."""


def choose_build(seed: int, debugger: Debugger) -> Build:
    """The program of a session."""
    known = [build for build in BUILDS if debugger.is_gdb or build.abi == "amd64"]
    weights = [_weight(build, debugger) for build in known]
    return random.Random(f"build {seed}").choices(known, weights)[0]


def _weight(build: Build, debugger: Debugger) -> float:
    if build.abi != "amd64":
        return 0.25  # there are as many of them again for each machine
    if build.program.threads and not debugger.is_gdb:
        return 0.3  # half of these sessions are another one each time, without the plugin
    return 1.0


def run(
    seed: int,
    debugger: Debugger,
    modes: Sequence[str] = MODES,
    build: Build | None = None,
    length: int = LENGTH,
    script: Sequence[Sequence[str]] = (),
) -> Outcome:
    """Run a session in all modes.

    :param script: what to type after the start, instead of what is chosen by chance.
    """
    build = build or choose_build(seed, debugger)
    outcome = Outcome(build.name, debugger.name, seed)
    started = time.monotonic()
    executable = built(build)
    try:
        moves = record(seed, debugger, build, executable, length, script)
    except (Hang, Died) as error:
        outcome.dropped = f"without the plugin: {error}"
        moves = []
    outcome.commands = sum(len(move.lines) for move in moves)
    outcome.times[WITHOUT] = sum(move.seconds for move in moves)
    terminal = debugger.at_terminal(seed)

    def replayed(mode: str) -> tuple[str, float]:
        return replay(moves, debugger, build, executable, mode, terminal)

    for mode in modes if moves else ():
        failure, outcome.times[mode] = replayed(mode)
        if failure:
            outcome.failures[mode] = failure
    witnesses = WITNESSES * (3 if build.program.threads else 1)
    for _ in range(witnesses if outcome.failures else 0):
        again, _ = replayed(WITHOUT)
        if again:
            outcome.dropped = f"not reproducible without the plugin: {again}"
            outcome.failures.clear()
            break
    for mode, failure in list(outcome.failures.items()):
        repeated = (Kind.PLACE, Kind.CONTENTS, *([Kind.DIE] if terminal and debugger.crashes_by_itself else []))
        if Kind.of(failure) in repeated and not all(replayed(mode)[0] for _ in range(WITNESSES)):
            outcome.unsteady[mode] = outcome.failures.pop(mode)
    outcome.seconds = time.monotonic() - started
    return outcome


def record(
    seed: int,
    debugger: Debugger,
    build: Build,
    executable: Path,
    length: int = LENGTH,
    script: Sequence[Sequence[str]] = (),
) -> list[Move]:
    """Choose the commands of a session while the debugger runs without the plugin.

    :param script: what to type after the start, instead of what is chosen by chance.
    :raises Hang, Died: nothing came of it, not even the start; or the script was not done to its end.
    """
    rng = random.Random(f"moves {seed}")
    language = gdb_commands if debugger.is_gdb else lldb_commands
    moves: list[Move] = []
    terminal = debugger.at_terminal(seed)
    with session(debugger, build, executable, WITHOUT, terminal) as channel:
        lines = language.start(build, arguments(build), rng)
        starts = 1
        channel.perform(debugger.first_lines(terminal), False, 0, _START_SECONDS)
        while True:
            full, level = rng.random() < 0.75 or not moves, rng.randint(1, 4)
            before = time.monotonic()
            try:
                text, state = channel.perform(lines, full, level, PATIENCE if moves else _START_SECONDS)
            except (Hang, Died):
                if script or not moves:
                    raise
                return moves
            seconds = time.monotonic() - before
            moves.append(Move(tuple(lines), full, level, seconds, clean(text, debugger), broken(text), state))
            if len(moves) > (len(script) or length):
                break
            if script:
                lines = list(script[len(moves) - 1])
            elif state["live"]:
                lines = language.choose(rng, {**state, "level": level}, build)
            elif build.abi == "amd64" and starts < STARTS:
                starts += 1
                lines = language.start(build, arguments(build), rng)
            else:
                break
        with contextlib.suppress(Hang, Died):
            channel.quit(GRACE)
    return moves


def replay(
    moves: Sequence[Move], debugger: Debugger, build: Build, executable: Path, mode: str, terminal: bool
) -> tuple[str, float]:
    """Give the same commands in a mode; return what differs, in a line, and how many seconds the commands took."""
    total = 0.0
    less = ""
    with session(debugger, build, executable, mode, terminal) as channel:
        shown, _ = channel.perform(debugger.first_lines(terminal), False, 0, _START_SECONDS)
        if broken(shown):
            return f"loading: {broken(shown)}", total
        for number, move in enumerate(moves):
            where = f"move {number} ({'; '.join(move.lines)})"
            before = time.monotonic()
            limit = (_START_SECONDS if number == 0 else GRACE) + _SLOWER * move.seconds
            try:
                text, state = channel.perform(move.lines, move.full, move.level, limit)
            except (Hang, Died) as error:
                return f"{where}: {'hangs' if isinstance(error, Hang) else 'dies'}: {error}", total
            total += time.monotonic() - before
            found = (broken(text) if not move.broken else "") or difference(move, clean(text, debugger), state, _PLACE)
            if found:
                return f"{where}: {found}", total
            # At a terminal another thread prints, when it gets to it.
            contents = _CONTENTS[:-1] if terminal else _CONTENTS
            found = "" if less or mode == STRICT else difference(move, clean(text, debugger), state, contents)
            less = less or (f"{where}: {found}" if found else "")
        try:
            channel.quit(GRACE)
        except (Hang, Died) as error:
            return f"the end: {error}", total
        found = "" if any(move.broken for move in moves) else broken(channel.transcript)
    return f"somewhere: {found}" if found else less, total


_PLACE = ("live", "exit", "process", "error", "thread", "frames", "end", "stop", "selected", "output")
_CONTENTS = ("locals", "outer", "registers", "text")
"""What goes on differing once it does, and does not change where the program goes: the session is not over."""


def difference(move: Move, text: str, state: dict[str, Any], keys: Sequence[str]) -> str:
    """The first of some things that is not as it is without the plugin; empty if all are equal."""
    before, now = {**move.state, "text": move.text.splitlines()}, {**state, "text": text.splitlines()}
    for key in keys:
        expected, found = before.get(key), now.get(key)
        if expected != found:
            return f"{key}: {_first(expected, found)}"
    return ""


def _first(expected: Any, found: Any) -> str:
    """Where two values differ first."""
    if isinstance(expected, list) and isinstance(found, list):
        for index, (left, right) in enumerate(zip(expected, found)):
            if left != right:
                return f"[{index}] {_brief(left)}, now {_brief(right)}"
        return f"{len(expected)} entries, now {len(found)}"
    return f"{_brief(expected)}, now {_brief(found)}"


def _brief(value: Any) -> str:
    if isinstance(value, list):
        return "(" + " ".join(hex(part) if type(part) is int and part > 99999 else str(part) for part in value) + ")"
    text = repr(value)
    return text if len(text) < 160 else text[:80] + " ... " + text[-80:]


_DROPPED = re.compile(r"^\[(?:New )?(?:Thread|Switching|LWP|Inferior).*$|^\(gdb\) *$|^@@.*$", re.M)
_SPOKEN = re.compile(r"error: |warning: |\([^)]*\) \S+ = ")
"""What LLDB prints as the answer to a command."""
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[78=>]|\r")
_MASKED = (
    (re.compile(r"\(gdb\) "), ""),
    (re.compile(r"Thread 0x[0-9a-f]+"), "Thread ADDRESS"),
    (re.compile(r"\bLWP \d+"), "LWP N"),
    (re.compile(r"\b([Pp]rocess|tid =|thread id|pid|PID:) \d+"), r"\1 N"),
    (re.compile(r"tid = 0x[0-9a-f]+"), "tid = N"),
    (re.compile(r"/tmp/drive-\w+"), "FOLDER"),
)


def clean(text: str, debugger: Debugger) -> str:
    """What a debugger printed, without what differs from run to run.

    Of LLDB's output errors and values alone: another thread shows where the program stopped, when it gets to it.
    """
    text = _CONTROL.sub("", text)
    for pattern, instead in _MASKED:
        text = pattern.sub(instead, text)
    text = _DROPPED.sub("", text)
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return "\n".join(lines if debugger.is_gdb else filter(_SPOKEN.match, lines))


def arguments(build: Build) -> str:
    """The program's command line as a shell takes it, without the program."""
    words = [str(FOLDER / word[1:]) if word.startswith("@") else word for word in build.program.arguments]
    standard_input = build.program.standard_input
    words += ["<", str(FOLDER / standard_input) if standard_input else "/dev/null", ">", OUTPUT]
    return " ".join(words)


@contextlib.contextmanager
def session(debugger: Debugger, build: Build, executable: Path, mode: str, terminal: bool = False) -> Iterator[Channel]:
    """A debugger on a program that does not run yet; afterwards both are gone."""
    # On one processor threads take turns, and by this policy none interrupts another.
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
    """An emulator that waits for GDB; its own addresses, on which the program's depend, are not randomised."""
    words = ABIS[build.abi].emulator
    command = ["setarch", "-R", words[0], "-seed", "1", "-g", "gdb-socket", *words[1:], str(executable)]
    with (folder / OUTPUT).open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.DEVNULL
        )
    wait_until(lambda: process.poll() is not None or listens(process.pid), "the emulator", _START_SECONDS)
    return process
