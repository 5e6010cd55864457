"""Random commands for LLDB, chosen from those that make sense in the program's state.

`thread return` is not among them: after it, LLDB 22.1 and 23.1 show varying stacks, and sometimes hang, also without
the plugin.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Callable

from lab.drive.menu import Lines, State, a_function, frames_of, pick
from lab.drive.programs import Build

_Choice = Callable[[random.Random, State, Build], Lines]
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*$")
_NUMBER = re.compile(r"(-?[0-9]+) None$")

_NO_LINE = 0xFFFFFFFF


def start(build: Build, arguments: str, rng: random.Random) -> Lines:
    """Return the lines that bring the program to its first stop."""
    return start_at(build, arguments, "main" if rng.random() < 0.6 else rng.choice(build.program.functions))


def start_at(build: Build, arguments: str, place: str) -> Lines:
    """Return the lines that bring the program from its start to the first call of a function."""
    words, _, redirections = arguments.partition("<")
    standard_input = redirections.partition(">")[0].strip() or "/dev/null"
    words = words.partition(">")[0].strip()
    launch = f"process launch -s -i {standard_input} -o output.txt -e /dev/null -- {words}"
    return [launch, "drive-fix", f"breakpoint set -o true {at(place)}", "continue"]


def at(place: str) -> str:
    """Return the option for a place: a function, or `*` and an address as in GDB."""
    return f"-a {place[1:]}" if place.startswith("*") else f"-n {place}"


def delete() -> Lines:
    """Return the lines that end the program and remove all breakpoints."""
    return ["process kill", "breakpoint delete -f"]


def choose(rng: random.Random, state: State, build: Build) -> Lines:
    """Return the next command, or a few that belong together."""
    return pick(_MENU, rng, state, build)


def _integers(variables: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    """Return names and values of the variables that are available integers."""
    found = ((name, kind, _NUMBER.match(value)) for name, kind, value in variables)
    return [(name, match[1]) for name, kind, match in found if match and _IDENTIFIER.match(name)]


def _always(*lines: str) -> _Choice:
    return lambda rng, state, build: list(lines)


def _step_instruction(rng: random.Random, state: State, build: Build) -> Lines:
    command = rng.choice(("thread step-inst", "thread step-inst", "thread step-inst-over"))
    return [command] * (1 if rng.random() < 0.6 else rng.randint(2, 12))


def _step_out_of(rng: random.Random, state: State, build: Build) -> Lines:
    if len(frames_of(state)) < 4:
        return []
    return [f"frame select {rng.choice((1, 1, 2))}", "thread step-out"]


def _until(rng: random.Random, state: State, build: Build) -> Lines:
    frames = frames_of(state)
    if not frames or not 0 < frames[0][3] < _NO_LINE:
        return []
    return [f"thread until {frames[0][3] + rng.randint(0, 4)}"]


def _continue(rng: random.Random, state: State, build: Build) -> Lines:
    once = rng.random() < 0.7
    lines = [f"breakpoint set {'-o true ' if once else ''}{at(a_function(rng, build))}"]
    return [*lines, "continue" if once or rng.random() < 0.6 else f"process continue -i {rng.randint(1, 3)}"]


def _condition(rng: random.Random, state: State, build: Build) -> Lines:
    frames = frames_of(state)
    known = _integers(state.get("locals", []))
    if not known or len(frames) < 2 or not 0 < frames[0][3] < _NO_LINE:
        return []
    name, value = rng.choice(known)
    line = frames[0][3] + rng.randint(0, 3)
    test = f"{name} {rng.choice(('!=', '==', '>='))} {value}"
    return [f"breakpoint set -o true -l {line} -c '{test}'", "continue"]


def _script_condition(rng: random.Random, state: State, build: Build) -> Lines:
    frames = frames_of(state)
    caller = rng.choice([str(frame[0]) for frame in frames[1:5]] or ["main"])
    caller = caller if rng.random() < 0.6 else a_function(rng, build)
    return [
        f"breakpoint set -o true {at(a_function(rng, build))}",
        f"breakpoint command add -F lldb_state.called_by -k caller -v {caller.partition('(')[0]}",
        "continue",
    ]


def _watch(rng: random.Random, state: State, build: Build) -> Lines:
    known = _integers(state.get("locals", []))
    if not known or len(frames_of(state)) < 3:
        return []
    name, _ = rng.choice(known)
    return [f"watchpoint set variable {name}", "continue", *(["continue"] if rng.random() < 0.4 else [])]


def _watch_outer(rng: random.Random, state: State, build: Build) -> Lines:
    known = _integers(state.get("outer", []))
    if not known:
        return []
    name, _ = rng.choice(known)
    outer = f"frame select {state['level']}"
    return [outer, f"watchpoint set variable {name}", "continue", "watchpoint delete -f"]


def _jump(rng: random.Random, state: State, build: Build) -> Lines:
    frames = frames_of(state)
    return [f"thread jump --by {rng.choice((-1, 1, 2))}"] if frames and 0 < frames[0][3] < _NO_LINE else []


def _call(rng: random.Random, state: State, build: Build) -> Lines:
    return [f"expression -- {rng.choice(build.program.calls)}"] if build.program.calls else []


def _call_that_stops(rng: random.Random, state: State, build: Build) -> Lines:
    if not build.program.calls:
        return []
    call = rng.choice(build.program.calls)
    place = call.partition("(")[0] if rng.random() < 0.5 else a_function(rng, build)
    ways = (["bt", "finish"], ["bt", "next", "finish"], ["thread step-inst", "bt"], ["bt"])
    stop = f"breakpoint set -o true {at(place)}"
    # LLDB may still have the event of that stop when the next command resumes the program, and takes it for the end of
    # that command: a step is still under way when the command returns (LLDB 23.1, alone, half of the time).
    return [stop, f"expression -i false -u false -- {call}", "drive-wait 0", *rng.choice(ways)]


def _exceptions(rng: random.Random, state: State, build: Build) -> Lines:
    if not build.program.exceptions:
        return []
    then = rng.choice(([], ["finish"], ["up", "next"], ["next"], ["step"], ["continue"]))
    caught = rng.choice(("-w true -h false", "-w false -h true", "-w true -h true"))
    return [f"breakpoint set -o true -E c++ {caught}", "continue", *then]


def _signals(rng: random.Random, state: State, build: Build) -> Lines:
    if not build.program.signals:
        return []
    ways = (
        ["breakpoint set -o true -n on_user", "continue", "bt", "finish"],
        ["process handle SIGUSR1 -s false -n false -p true", "next"],
        ["process handle SIGUSR1 -s true -n true -p true", "continue"],
    )
    return rng.choice(ways)


def _thread(rng: random.Random, state: State, build: Build) -> Lines:
    threads = state.get("threads", [])
    if len(threads) < 2:
        return []
    ways: tuple[Lines, ...] = ([], ["bt"], ["up", "frame variable"], ["finish"], ["next"])
    return [f"thread select {rng.choice(threads)}", *rng.choice(ways)]


def _assign(rng: random.Random, state: State, build: Build) -> Lines:
    known = _integers(state.get("outer", []))
    if not known:
        return []
    name, value = rng.choice(known)
    return [f"frame select {state['level']}", f"expression -- {name} = {value}", f"frame variable {name}"]


def _look(rng: random.Random, state: State, build: Build) -> Lines:
    ways = (["bt"], ["bt 3"], ["thread backtrace -e true"], ["up", "frame variable"], ["frame info"], ["thread info"])
    return rng.choice(ways)


_MENU: tuple[tuple[_Choice, int], ...] = (
    (_always("thread step-over"), 12),
    (_always("thread step-in"), 14),
    (_step_instruction, 8),
    (_always("thread step-out"), 7),
    (_always("finish"), 2),
    (_step_out_of, 5),
    (_until, 4),
    (_continue, 9),
    (_condition, 3),
    (_script_condition, 3),
    (_watch, 3),
    (_watch_outer, 2),
    (_jump, 1),
    (_call, 3),
    (_call_that_stops, 4),
    (_exceptions, 5),
    (_signals, 5),
    (_thread, 5),
    (_assign, 2),
    (_look, 4),
    (_always("breakpoint delete -f", "next"), 2),
)
