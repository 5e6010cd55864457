"""Runs sessions at the corners of the dimensions: each with one build, one client, one place and one mode.

If the program's CFI is complete, or it has no SFrame, everything must be as in the same debugger without the plugin.
If only SFrame describes some functions, the moves are chosen on a copy of the program with its CFI, and place and stack
must be as in that copy.
A variable or register may then be missing, but must not be wrong.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.drive import packets, places
from lab.drive.channel import Channel, Died, Hang
from lab.drive.clients import Adapter, MachineInterface, Script
from lab.drive.debuggers import STRICT, WITHOUT, Debugger
from lab.drive.dimensions import (
    DISTANT,
    LIVE,
    NO_SFRAME,
    NOBODY,
    REMOTE,
    SHALLOW,
    Corner,
    all_pairs,
    corner_of,
    coverage,
)
from lab.drive.makings import Making, made
from lab.drive.menu import Lines, State
from lab.drive.programs import Build
from lab.drive.scene import Scene
from lab.drive.session import (
    CONTENTS,
    COUNTS,
    PLACE,
    UNSTEADY_WITNESSES,
    WITNESSES,
    Kind,
    Move,
    Outcome,
    difference,
    record,
    replay,
)
from lab.real_programs import ProgramError

LENGTH = 14
"""Number of moves in a session."""
_SLOW, _SLOWER = 3.0, 4.0
"""A session is too slow if it takes so many seconds more than without the plugin, and so many times as long."""


class CornerScene(Scene):
    """The debugger and the program of a corner's session."""

    def __init__(self, debugger: Debugger, corner: Corner, making: Making, executable: Path, seed: int) -> None:
        build = Build(making.program, corner["level"])
        super().__init__(debugger, build, executable, corner["client"] == "terminal")
        self.corner = corner
        self.can_start_again = corner["place"] == LIVE and corner["client"] != "dap"
        self._core = None
        if places.is_core(corner["place"]):
            self._core = places.core_of(debugger, build, executable, corner["place"], seed)

    def first_lines(self) -> Sequence[str]:
        return self.debugger.first_lines(self.terminal) if self.corner["client"] == "batch" else ()

    def start(self, rng: random.Random) -> Lines:
        before = [] if self.corner["others"] == NOBODY else [f"drive-{self.corner['others']}"]
        if self.corner["version"] == NO_SFRAME and self.corner["client"] != "dap":
            before.append(packets.logging(self.debugger.is_gdb))
        lines = [*before, *self._start(rng)]
        # Its main has another name below a recursion.
        return [_MAIN.sub("program_main", line) for line in lines] if self.corner["depth"] != SHALLOW else lines

    def _start(self, rng: random.Random) -> Lines:
        if self._core is not None:
            return places.core_start(self.debugger, self._core, self.executable)
        if self.corner["place"] in (REMOTE, DISTANT):
            return places.remote_start(self.build, self.executable, rng, self.corner["place"] == DISTANT)
        if self.corner["client"] == "dap":
            return ["launch " + json.dumps([str(self.executable), [rng.choice(self.build.program.functions)]])]
        return super().start(rng)

    def choose(self, rng: random.Random, state: State) -> Lines:
        if self._core is not None:
            return places.look(rng, state, self.build, self.debugger.is_gdb)
        if self.corner["client"] == "dap":
            return _request(rng, self.build)
        while True:
            lines = super().choose(rng, state)
            # Moves that the plugin refuses if registers are unknown, and those that start another program.
            if not any(line.split()[0] in _LEFT_OUT for line in lines):
                return lines

    def for_file(self, lines: Sequence[str], executable: Path) -> tuple[str, ...]:
        """Return the lines that open another copy of the program."""
        return tuple(line.replace(str(self.executable.parent), str(executable.parent)) for line in lines)

    @contextlib.contextmanager
    def opened(self, mode: str) -> Iterator[Channel]:
        command, environment = self._command(mode), self.debugger.environment()
        client = self.corner["client"]
        if client in _SERVED:
            startup = [] if self.debugger.is_gdb else self.debugger.lldb_startup(self.executable, mode)
            channel: Channel = Script(command, environment)
            (channel.folder / "startup.json").write_text(json.dumps(startup), encoding="utf-8")
        elif client == "mi":
            channel = MachineInterface(command, environment)
        elif client == "dap":
            channel = Adapter(command, environment)
        else:
            channel = Channel(command, environment, self.terminal, self.terminal and not self.debugger.is_gdb)
        try:
            yield channel
        finally:
            channel.close()

    def _command(self, mode: str) -> list[str]:
        client = self.corner["client"]
        word = "drive-serve" if self.debugger.is_gdb else f"drive-serve {client}"
        more = {"mi": ["--interpreter=mi3"], "dap": ["-i", "dap"]}.get(client, [])
        if client in _SERVED:
            more = ["-ex" if self.debugger.is_gdb else "-o", word]
        return self.debugger.command(self.executable, mode, more=more)


_MAIN = re.compile(r"(?<=break )main\b|(?<=-n )main\b")
_SERVED = ("script", "async-script", "two")
_LEFT_OUT = ("return",)


def _request(rng: random.Random, build: Build) -> Lines:
    """Return an editor's request."""
    kind = rng.choices(("next", "stepIn", "stepOut", "stepi", "break", "repl"), (5, 6, 4, 2, 4, 1))[0]
    if kind == "break":
        return [f"break {rng.choice(build.program.functions)}", "continue"]
    return ["repl backtrace 3"] if kind == "repl" else [kind]


def run(
    seed: int,
    debugger: Debugger,
    corner: Corner | None = None,
    length: int = LENGTH,
    moves: list[Move] | None = None,
    judges_speed: bool = False,
) -> Outcome:
    """Run the session of a seed.

    :param corner: another corner than the seed's.
    :param moves: gets the moves of the session without the plugin.
    :param judges_speed: a session that is much slower with the plugin is a failure; of use on an idle machine alone.
    """
    corner = corner or corner_of(seed, debugger.is_gdb, debugger.has_adapter)
    outcome = Outcome("/".join(corner.values()), debugger.name, seed)
    started = time.monotonic()
    try:
        _compare(
            seed=seed,
            debugger=debugger,
            corner=corner,
            length=length,
            outcome=outcome,
            moves=moves if moves is not None else [],
            judges_speed=judges_speed,
        )
    except (Hang, Died, ProgramError) as error:
        outcome.dropped = f"without the plugin: {error}"
    outcome.seconds = time.monotonic() - started
    return outcome


def _compare(
    seed: int,
    debugger: Debugger,
    corner: Corner,
    length: int,
    outcome: Outcome,
    moves: list[Move],
    judges_speed: bool,
) -> None:
    making, mode = made(corner, seed, debugger.is_gdb), corner["mode"]
    own = CornerScene(debugger, corner, making, making.file, seed)
    lacking = making.whole != making.file and mode != "off" and corner["version"] != NO_SFRAME
    model = CornerScene(debugger, corner, making, making.whole, seed) if lacking else own
    moves += record(seed, model, length)
    moved = [_moved(move, model, own) for move in moves]
    outcome.commands = sum(len(move.lines) for move in moves)
    outcome.times[WITHOUT] = sum(move.seconds for move in moves)
    judge = Judge(
        corner=corner,
        mode=mode,
        lacking=lacking,
        terminal=own.terminal,
        is_gdb=debugger.is_gdb,
        unknown=making.unknown,
    )
    failure, outcome.times[mode] = replay(moved, own, mode, judge)
    if judges_speed and not failure and _too_slow(outcome.times[mode], outcome.times[WITHOUT]):
        least = min(replay(moved, own, mode, judge)[1] for _ in range(WITNESSES))
        if _too_slow(least, outcome.times[WITHOUT]):
            failure = f"slow: {least:.1f} s, {outcome.times[WITHOUT]:.1f} s without the plugin"
    if not failure:
        return
    for _ in range(WITNESSES if debugger.is_gdb else UNSTEADY_WITNESSES):
        again, _ = replay(moves, model, WITHOUT, judge)
        if again and _place(again)[0] <= _place(failure)[0]:  # else it varies only after what went wrong
            outcome.dropped = f"not reproducible without the plugin: {again}; with it: {failure}"
            return
    may_pass = not debugger.is_gdb and Kind.of(failure) in (Kind.PLACE, Kind.CONTENTS)
    if may_pass and not all(replay(moved, own, mode, judge)[0] for _ in range(WITNESSES)):
        outcome.unsteady[mode] = failure
        return
    if lacking:
        alone, _ = replay(moved, own, WITHOUT, judge.first if Kind.of(failure) is Kind.CONTENTS else judge)
        if alone and _place(alone) <= _place(failure):
            outcome.alone[mode] = f"{failure}; alone: {alone}"
            return
    outcome.failures[mode] = failure


def met(outcomes: Iterable[Outcome], debugger: Debugger, wanted: Corner) -> Iterator[str]:
    """Return the table of the pairs of values that met in the compared sessions of a debugger.

    :param wanted: values of all corners; see :func:`corner_of`.
    """
    own = (outcome for outcome in outcomes if outcome.debugger == debugger.name and not outcome.dropped)
    corners = [corner_of(outcome.seed, debugger.is_gdb, debugger.has_adapter, wanted) for outcome in own]
    return coverage(corners, all_pairs(debugger.is_gdb, debugger.has_adapter))


def show(seed: int, debugger: Debugger, wanted: Corner) -> int:
    """Print the input and output in the session of a seed; return 1 if anything differs.

    :param wanted: values of the corner; see :func:`corner_of`.
    """
    corner = corner_of(seed, debugger.is_gdb, debugger.has_adapter, wanted)
    program = made(corner, seed, debugger.is_gdb).file
    print(f"{' '.join(f'{name}={value}' for name, value in corner.items())}\nprogram: {program}")
    moves: list[Move] = []
    outcome = run(seed, debugger, corner, moves=moves)
    for number, move in enumerate(moves):
        print(f"--- move {number} ({move.seconds:.2f} s): {'; '.join(move.lines)}\n{move.text}")
        for frame in move.state.get("frames", ())[:8]:
            print(f"    {frame}")
    print(outcome)
    return bool(outcome.failures)


def _too_slow(seconds: float, without: float) -> bool:
    return seconds > without + _SLOW and seconds > without * _SLOWER


def _moved(move: Move, model: CornerScene, own: CornerScene) -> Move:
    """Return the same move in the other copy of the program."""
    return Move(model.for_file(move.lines, own.executable), *list(move.__dict__.values())[1:])


def _place(failure: str) -> tuple[int, int]:
    """Return the number of the move in which something failed, and of the innermost wrong frame; 0: it is no frame."""
    match = re.match(r"move (\d+) ", failure)
    frame = re.search(r"\): frames: (?:\[(\d+)\]|(\d+) entries, now (\d+)$)", failure)
    return int(match[1]) if match else 1_000, min(map(int, filter(None, frame.groups()))) if frame else 0


@dataclass(frozen=True)
class Judge:
    """Compares an answer with the one without the plugin."""

    corner: Corner
    mode: str
    lacking: bool
    """Whether the reference is a copy of the program that has more CFI."""
    terminal: bool
    is_gdb: bool
    """Whether the debugger is GDB.  In LLDB 22 and 23, a frame of the plugin has no stack pointer."""
    unknown: tuple[tuple[int, int], ...]

    def __call__(self, move: Move, text: str, state: State) -> tuple[str, str]:
        """Return the first difference in the place, and the first in the contents."""
        if not self.lacking and self.mode != STRICT:
            contents = CONTENTS[:-1] if self.terminal else CONTENTS
            if self.corner["version"] == NO_SFRAME and (self.is_gdb or not self.terminal):
                contents = (*contents, *COUNTS)  # what LLDB's event thread reads at a terminal varies
            return difference(move, text, state, (*PLACE, "others")), difference(move, text, state, contents)
        model = Move(
            lines=move.lines,
            full=move.full,
            level=move.level,
            seconds=move.seconds,
            text=move.text,
            broken=move.broken,
            state=self._plain(move.state),
        )
        place = difference(model, text, self._plain(state), _PLACE_WITHOUT_CFI)
        inside = [frame[1] for frame in move.state.get("frames", [])[: move.level]]
        keys = ("locals",) if any(map(self._is_unknown, inside)) else ("locals", "outer", "registers")
        return place, "" if place else _wrong_value(move.state, state, keys)

    def first(self, move: Move, text: str, state: State) -> tuple[str, str]:
        """Return the first difference of either kind as one in the place, with which a replay ends.

        Otherwise, a difference in the place at a later move would hide one in the contents.
        """
        return next(filter(None, self(move, text, state)), ""), ""

    def _plain(self, state: State) -> State:
        """Return a state without the parts that the file cannot give: tail calls, names, and some outer frames.

        LLDB names a function without a symbol after its FDE.
        """
        frames = [frame for frame in state.get("frames", []) if frame[2] not in ("tailcall", "artificial")]
        named = self.corner["symbols"] == "all"
        if self.corner["client"] == "dap":  # an editor chooses a frame in each request
            state = {**state, "selected": None}
        last = next((index for index, frame in enumerate(frames) if self._is_unknown(frame[1])), len(frames))
        kept = [*([0] if named else []), 1, *([3] if named else []), *([4] if self.is_gdb else [])]
        return {**state, "frames": [[frame[part] for part in kept] for frame in frames[: last + 1]]}

    def _is_unknown(self, pc: int) -> bool:
        return any(first <= pc < end for first, end in self.unknown)


_PLACE_WITHOUT_CFI = ("live", "exit", "process", "thread", "frames", "stop", "selected", "output")
_ABSENT = ("error", "optimized out", "not saved", "unavailable", "not available", "none", "None None")


def _wrong_value(before: State, now: State, keys: Sequence[str]) -> str:
    """Return the first variable or register in some parts of the state that both have, and that differs."""
    for key in keys:
        old, new = before.get(key, []), now.get(key, [])
        if key != "locals" and len(before.get("frames", [])) != len(now.get("frames", [])):
            continue
        values: dict[Any, list[str]] = {}
        for *name, value in old:
            values.setdefault(tuple(name), []).append(value)
        for *name, value in new:
            known = values.get(tuple(name))
            if known and value not in known and not any(word in text for text in (value, *known) for word in _ABSENT):
                return f"{key}: {' '.join(name)} = {known[0]}, now {value}"
    return ""
