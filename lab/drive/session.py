"""Runs one session: chooses its commands without the plugin, repeats them with it, and compares the answers."""

from __future__ import annotations

import contextlib
import enum
import random
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Callable

from lab.drive.building import built
from lab.drive.channel import Died, Hang, broken
from lab.drive.debuggers import MODES, STRICT, WITHOUT, Debugger
from lab.drive.programs import BUILDS, Build
from lab.drive.scene import Scene
from tests.hanging import HANG, hang_after

LENGTH = 25
"""Number of commands, or groups of commands that belong together, in a session."""
WITNESSES = 2
"""Number of repetitions without the plugin of a session with a difference: does it always go the same way?"""
UNSTEADY_WITNESSES = 6
"""The same for a debugger that alone does not always do the same: some steps of LLDB go one of two ways."""
STARTS = 4
"""Maximum number of starts of a program in a session: it may run to its end early."""
PATIENCE = hang_after(0.1)
"""Seconds that a random command may take without the plugin; the session ends before a slower one."""


@dataclass(frozen=True)
class Move:
    """The typed lines, and their results."""

    lines: tuple[str, ...]
    full: bool
    level: int
    seconds: float
    text: str
    broken: str
    """Output that no user should see, but that also appears without the plugin: `$_caller_matches` of GDB can fail."""
    state: dict[str, Any]


class Kind(enum.Enum):
    """The kind of an error in a session: the table's columns."""

    PLACE = "place"
    """The program is at another place, or its stack differs."""
    CONTENTS = "contents"
    """Variables, registers or texts differ."""
    SLOW = "slow"
    HANG = "hang"
    DIE = "die"

    @classmethod
    def of(cls, failure: str) -> Kind:
        """Return the kind of a failure, given the line that describes it."""
        what = failure.partition("): ")[2] or failure
        if failure.startswith("slow: "):
            return cls.SLOW
        if " dies: " in failure or "ended by" in failure or "ended with" in failure:
            return cls.DIE
        if " hangs: " in failure or "no answer within" in failure:
            return cls.HANG
        return cls.CONTENTS if what.partition(":")[0] in (*CONTENTS, *COUNTS) else cls.PLACE


@dataclass
class Outcome:
    """The result of a session."""

    build: str
    debugger: str
    seed: int
    commands: int = 0
    seconds: float = 0.0
    dropped: str = ""
    """Why nothing was compared; empty: it was."""
    failures: dict[str, str] = field(default_factory=dict)
    """The error by mode, in a line."""
    unsteady: dict[str, str] = field(default_factory=dict)
    """By mode, an error that occurred once, but not when the session was repeated."""
    alone: dict[str, str] = field(default_factory=dict)
    """By mode, an error at or after a place where the debugger alone is wrong, because the program has no CFI there."""
    times: dict[str, float] = field(default_factory=dict)
    """Seconds that all commands together took, by mode."""


def choose_build(seed: int, debugger: Debugger) -> Build:
    """Return the program of a session."""
    known = [build for build in BUILDS if debugger.is_gdb or build.abi == "amd64"]
    weights = [_weight(build, debugger) for build in known]
    return random.Random(f"build {seed}").choices(known, weights)[0]


def _weight(build: Build, debugger: Debugger) -> float:
    if build.abi != "amd64":
        return 0.25  # there are as many for each other machine
    if build.program.threads and not debugger.is_gdb:
        return 0.3  # half of these sessions vary even without the plugin
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

    :param script: lines to type after the start, instead of random ones.
    """
    build = build or choose_build(seed, debugger)
    scene = Scene(debugger, build, built(build), debugger.at_terminal(seed))
    return compared(scene, seed, modes, length, script)


def compared(
    scene: Scene, seed: int, modes: Sequence[str], length: int = LENGTH, script: Sequence[Sequence[str]] = ()
) -> Outcome:
    """Run a session in a scene, without the plugin and in all modes.

    :param script: lines to type after the start, instead of random ones.
    """
    debugger, build = scene.debugger, scene.build
    outcome = Outcome(build.name, debugger.name, seed)
    started = time.monotonic()
    try:
        moves = record(seed, scene, length, script)
    except (Hang, Died) as error:
        outcome.dropped = f"without the plugin: {error}"
        moves = []
    outcome.commands = sum(len(move.lines) for move in moves)
    outcome.times[WITHOUT] = sum(move.seconds for move in moves)

    def replayed(mode: str) -> tuple[str, float]:
        return replay(moves, scene, mode)

    for mode in modes if moves else ():
        failure, outcome.times[mode] = replayed(mode)
        if failure:
            outcome.failures[mode] = failure
    # GDB always does the same if a program has one thread.
    steady = debugger.is_gdb and not build.program.threads
    witnesses = WITNESSES if steady else UNSTEADY_WITNESSES
    for _ in range(witnesses if outcome.failures else 0):
        again, _ = replayed(WITHOUT)
        if again:
            outcome.dropped = f"not reproducible without the plugin: {again}"
            outcome.failures.clear()
            break
    for mode, failure in [] if steady else list(outcome.failures.items()):
        repeated = (Kind.PLACE, Kind.CONTENTS, *([Kind.DIE] if scene.terminal and debugger.crashes_by_itself else []))
        if Kind.of(failure) in repeated and not all(replayed(mode)[0] for _ in range(WITNESSES)):
            outcome.unsteady[mode] = outcome.failures.pop(mode)
    outcome.seconds = time.monotonic() - started
    return outcome


def record(seed: int, scene: Scene, length: int = LENGTH, script: Sequence[Sequence[str]] = ()) -> list[Move]:
    """Choose the commands of a session while the debugger runs without the plugin.

    :param script: lines to type after the start, instead of random ones.
    :raises Hang, Died: even the start failed, or the script was not completed.
    """
    rng = random.Random(f"moves {seed}")
    moves: list[Move] = []
    with scene.opened(WITHOUT) as channel:
        lines = scene.start(rng)
        starts = 1
        channel.perform(scene.first_lines(), False, 0, HANG)
        while True:
            full, level = rng.random() < 0.75 or not moves, rng.randint(1, 4)
            before = time.monotonic()
            try:
                text, state = channel.perform(lines, full, level, PATIENCE if moves and not script else HANG)
            except (Hang, Died):
                if script or not moves:
                    raise
                return moves
            seconds = time.monotonic() - before
            moves.append(
                Move(
                    lines=tuple(lines),
                    full=full,
                    level=level,
                    seconds=seconds,
                    text=clean(text, scene.debugger),
                    broken=broken(text),
                    state=state,
                )
            )
            if len(moves) > (len(script) or length):
                break
            if script:
                lines = list(script[len(moves) - 1])
            elif state["live"]:
                lines = scene.choose(rng, {**state, "level": level})
            elif scene.can_start_again and starts < STARTS:
                starts += 1
                lines = scene.start(rng)
            else:
                break
        with contextlib.suppress(Hang, Died):
            channel.quit(HANG)
    return moves


Differences = Callable[[Move, str, dict[str, Any]], tuple[str, str]]
"""Returns, for a move, its output and the state, the first difference in the place, and the first in the contents."""


def replay(moves: Sequence[Move], scene: Scene, mode: str, differences: Differences | None = None) -> tuple[str, float]:
    """Give the same commands in a mode; return the difference in a line, and the seconds that the commands took.

    :param differences: compares answers; default: everything is compared.
    """
    total = 0.0
    less = ""

    def everything(move: Move, text: str, state: dict[str, Any]) -> tuple[str, str]:
        # At a terminal, another thread prints, at varying times.
        contents = () if mode == STRICT else CONTENTS[:-1] if scene.terminal else CONTENTS
        return difference(move, text, state, PLACE), difference(move, text, state, contents)

    differences = differences or everything
    with scene.opened(mode) as channel:
        shown, _ = channel.perform(scene.first_lines(), False, 0, HANG)
        if broken(shown):
            return f"loading: {broken(shown)}", total
        for number, move in enumerate(moves):
            where = f"move {number} ({'; '.join(move.lines)})"
            before = time.monotonic()
            try:
                text, state = channel.perform(move.lines, move.full, move.level, HANG)
            except (Hang, Died) as error:
                return f"{where}: {'hangs' if isinstance(error, Hang) else 'dies'}: {error}", total
            total += time.monotonic() - before
            place, contents = differences(move, clean(text, scene.debugger), state)
            found = (broken(text) if not move.broken else "") or place
            if found:
                return f"{where}: {found}", total
            less = less or (f"{where}: {contents}" if contents else "")
        try:
            channel.quit(HANG)
        except (Hang, Died) as error:
            return f"the end: {error}", total
        found = "" if any(move.broken for move in moves) else broken(channel.transcript)
    return f"somewhere: {found}" if found else less, total


PLACE = ("live", "exit", "process", "error", "thread", "frames", "end", "stop", "selected", "output")
CONTENTS = ("locals", "outer", "registers", "heard", "text")
"""Parts that stay different once they are, but do not change where the program goes: the session continues."""
COUNTS = ("packets", "events")
"""How often what happened so far, by name.  Only where the plugin sleeps must they be the same."""


def difference(move: Move, text: str, state: dict[str, Any], keys: Sequence[str]) -> str:
    """Return the first of some parts that differs from the one without the plugin; empty: all are equal."""
    before, now = {**move.state, "text": move.text.splitlines()}, {**state, "text": text.splitlines()}
    for key in keys:
        expected, found = before.get(key), now.get(key)
        if expected != found:
            return f"{key}: {_first(expected, found)}"
    return ""


def _first(expected: Any, found: Any) -> str:
    """Return the first difference of two values."""
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
"""Matches the answers in LLDB's output."""
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[78=>]|\r")
_MASKED = (
    (re.compile(r"\(gdb\) "), ""),
    (re.compile(r"Thread 0x[0-9a-f]+"), "Thread ADDRESS"),
    (re.compile(r"\bLWP \d+"), "LWP N"),
    (re.compile(r'\b(pid|core)="\d+"'), r'\1="N"'),
    (re.compile(r"\b([Pp]rocess|tid =|thread id|pid =|pid|PID:) \d+"), r"\1 N"),
    (re.compile(r"tid = 0x[0-9a-f]+"), "tid = N"),
    (re.compile(r"/tmp/drive-\w+"), "FOLDER"),
)


def clean(text: str, debugger: Debugger) -> str:
    """Return a debugger's output without the parts that vary.

    For LLDB, only errors and values are kept: another thread shows the place of the program, at varying times.
    """
    text = _CONTROL.sub("", text)
    for pattern, instead in _MASKED:
        text = pattern.sub(instead, text)
    text = _DROPPED.sub("", text)
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return "\n".join(lines if debugger.is_gdb else filter(_SPOKEN.match, lines))
