"""Random commands for GDB, chosen from those that make sense in the program's state."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Callable

from lab.drive.menu import Lines, State, a_function, frames_of, pick
from lab.drive.programs import Build

_Choice = Callable[[random.Random, State, Build], Lines]
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*$")
_NUMBER = re.compile(r"-?[0-9]+$")


def start(build: Build, arguments: str, rng: random.Random) -> Lines:
    """Return the lines that bring the program to its first stop."""
    lines = [] if build.program.signals else ["handle SIGUSR1 nostop noprint"]
    if build.program.threads and rng.random() < 0.8:
        lines.append("set scheduler-locking step")  # otherwise it varies whether other threads run during a step
    first = "main" if rng.random() < 0.6 else rng.choice(build.program.functions)
    again = rng.choice((0, 0, 1, 2)) if first != "main" else 0
    lines += ["tbreak main", f"tbreak {first}"] if again else [f"tbreak {first}"]
    if build.abi == "amd64":
        return [*lines, f"starti {arguments}", "drive-fix", "continue"]
    return ["target remote gdb-socket", *lines, "continue"]


def start_at(build: Build, arguments: str, place: str) -> Lines:
    """Return the lines that bring the program from its start to the first call of a function."""
    return [f"tbreak {place}", f"starti {arguments}", "drive-fix", "continue"]


def delete() -> Lines:
    """Return the lines that end the program and remove all breakpoints."""
    return ["kill", "delete"]


def choose(rng: random.Random, state: State, build: Build) -> Lines:
    """Return the next command, or a few that belong together."""
    return pick(_MENU, rng, state, build)


def _integers(variables: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    """Return names and values of the variables that are available integers."""
    return [
        (name, value)
        for name, kind, value in variables
        if _NUMBER.match(value) and _IDENTIFIER.match(name) and "volatile" not in kind
    ]


def _always(*lines: str) -> _Choice:
    return lambda rng, state, build: list(lines)


def _next(rng: random.Random, state: State, build: Build) -> Lines:
    return ["next"] if rng.random() < 0.75 else [f"next {rng.randint(2, 6)}"]


def _step(rng: random.Random, state: State, build: Build) -> Lines:
    return ["step"] if rng.random() < 0.75 else [f"step {rng.randint(2, 12)}"]


def _stepi(rng: random.Random, state: State, build: Build) -> Lines:
    command = rng.choice(("stepi", "stepi", "nexti"))
    return [command] if rng.random() < 0.6 else [f"{command} {rng.randint(2, 25)}"]


def _up_and(rng: random.Random, state: State, build: Build) -> Lines:
    if len(frames_of(state)) < 4:
        return []
    count = rng.choice((1, 1, 1, 2))
    return [f"up {count}", rng.choice(("finish", "finish", "stepi", "next", "step", "until", "advance"))]


def _until(rng: random.Random, state: State, build: Build) -> Lines:
    frames = frames_of(state)
    lines = [each[3] for each in frames[:1] if each[3]]
    if lines and rng.random() < 0.4:
        return [f"until {lines[0] + rng.randint(1, 5)}"]
    return ["until"]


def _advance(rng: random.Random, state: State, build: Build) -> Lines:
    frames = frames_of(state)
    if len(frames) > 2 and rng.random() < 0.6:
        return [f"advance *{frames[1][1]:#x}"]
    return [f"advance {a_function(rng, build)}"]


def _continue(rng: random.Random, state: State, build: Build) -> Lines:
    place = a_function(rng, build)
    kind = rng.choice(("tbreak", "tbreak", "tbreak", "break", "hbreak"))
    lines = [f"{kind} {place}"]
    return [*lines, "continue" if kind == "tbreak" or rng.random() < 0.6 else f"continue {rng.randint(2, 4)}"]


def _caller_condition(rng: random.Random, state: State, build: Build) -> Lines:
    place, caller = a_function(rng, build), a_function(rng, build)
    function = rng.choice(("_caller_is", "_any_caller_is", "_caller_matches"))
    tail = ", 2" if function == "_caller_is" and rng.random() < 0.3 else ""
    return [f'tbreak {place} if ${function}("{caller}"{tail})', "continue"]


def _commands_that_select(rng: random.Random, state: State, build: Build) -> Lines:
    """A breakpoint's commands select a frame, which is still selected at the prompt."""
    commands = rng.choice(("silent\\nup", "up", "silent\\nbacktrace 2\\nup", "backtrace 3"))
    attached = f"python gdb.breakpoints()[-1].commands = '{commands}'"
    return [
        f"tbreak {a_function(rng, build)}",
        attached,
        "continue",
        "info frame",
        rng.choice(("up", "next", "finish")),
    ]


def _local_condition(rng: random.Random, state: State, build: Build) -> Lines:
    frames = frames_of(state)
    known = _integers(state.get("locals", []))
    if not known or len(frames) < 2 or not frames[0][3]:
        return []
    name, value = rng.choice(known)
    line = frames[0][3] + rng.randint(0, 3)
    return [f"tbreak {line} if {name} {rng.choice(('!=', '==', '>='))} {value}", "continue"]


def _python_stop(rng: random.Random, state: State, build: Build) -> Lines:
    frames = frames_of(state)
    caller = rng.choice([str(frame[0]) for frame in frames[1:5]] or ["main"])
    caller = caller if rng.random() < 0.6 else a_function(rng, build)
    return [f"drive-break {a_function(rng, build)} {caller.partition('(')[0]} {rng.randint(1, 4)}", "continue"]


def _watch(rng: random.Random, state: State, build: Build) -> Lines:
    known = _integers(state.get("locals", []))
    if not known or len(frames_of(state)) < 3:
        return []
    name, _ = rng.choice(known)
    hardware = rng.random() < 0.6 and build.abi == "amd64"
    lines = [f"set can-use-hw-watchpoints {int(hardware)}", f"watch {name}", "continue"]
    return [*lines, *(["continue"] if rng.random() < 0.4 else []), "set can-use-hw-watchpoints 1"]


def _watch_outer(rng: random.Random, state: State, build: Build) -> Lines:
    known = _integers(state.get("outer", []))
    if not known or build.abi != "amd64":
        return []
    name, _ = rng.choice(known)
    return [f"frame {state['level']}", f"watch {name}", "continue"]


def _record(rng: random.Random, state: State, build: Build) -> Lines:
    if build.abi != "amd64" or build.program.threads:
        return []
    forward = rng.choices(("next", "step", "stepi 10", "nexti 3"), k=rng.randint(2, 4))
    back = rng.choices(("reverse-next", "reverse-step", "reverse-stepi", "reverse-finish", "reverse-nexti 2"), k=3)
    return ["record", *forward, *back, rng.choice(("next", "step")), "record stop"]


def _return(rng: random.Random, state: State, build: Build) -> Lines:
    if len(frames_of(state)) < 4:
        return []
    return rng.choice((["return"], ["up", "return"], ["return 1"], ["up", "return 42"]))


def _jump(rng: random.Random, state: State, build: Build) -> Lines:
    frames = frames_of(state)
    if not frames or not frames[0][3]:
        return []
    line = frames[0][3] + rng.randint(-2, 2)
    return [f"tbreak {line}", f"jump {line}"]


def _call(rng: random.Random, state: State, build: Build) -> Lines:
    if not build.program.calls:
        return []
    return _alone([f"{rng.choice(('print', 'call'))} {rng.choice(build.program.calls)}"], build)


def _call_that_stops(rng: random.Random, state: State, build: Build) -> Lines:
    if not build.program.calls:
        return []
    call = rng.choice(build.program.calls)
    place = call.partition("(")[0] if rng.random() < 0.5 else a_function(rng, build)
    ways = (["backtrace", "finish"], ["backtrace", "next", "finish"], ["up", "finish"], ["stepi", "backtrace"])
    return _alone([f"tbreak {place}", f"print {call}", *rng.choice(ways)], build)


def _alone(lines: Lines, build: Build) -> Lines:
    """Return lines during which the other threads are stopped: how far they get while GDB calls a function varies."""
    if not build.program.threads:
        return lines
    return ["set scheduler-locking on", *lines, "set scheduler-locking step"]


def _exceptions(rng: random.Random, state: State, build: Build) -> Lines:
    if not build.program.exceptions:
        return []
    then = rng.choice(([], ["finish"], ["up", "next"], ["next"], ["step"], ["continue"]))
    return [f"{rng.choice(('tcatch', 'catch'))} {rng.choice(('throw', 'catch', 'rethrow'))}", "continue", *then]


def _signals(rng: random.Random, state: State, build: Build) -> Lines:
    if not build.program.signals:
        return []
    ways = (["tbreak on_user", "continue", "backtrace", "finish"], ["handle SIGUSR1 nostop noprint pass", "next"])
    more = (["handle SIGUSR1 stop print pass", "continue"], ["signal 0"], ["signal SIGUSR2"], ["queue-signal SIGUSR1"])
    return rng.choice((*ways, *more))


def _thread(rng: random.Random, state: State, build: Build) -> Lines:
    threads = state.get("threads", [])
    if len(threads) < 2:
        return []
    chosen = f"thread {rng.choice(threads)}"
    ways: tuple[Lines, ...] = ([], ["backtrace"], ["up", "info locals"], ["finish"], ["next"])
    return [chosen, *rng.choice(ways)]


def _locking(rng: random.Random, state: State, build: Build) -> Lines:
    if len(state.get("threads", [])) < 2:
        return []
    mode = rng.choice(("step", "replay", "on"))
    return [f"set scheduler-locking {mode}", "next", *(["set scheduler-locking step"] if mode == "on" else [])]


def _assign(rng: random.Random, state: State, build: Build) -> Lines:
    known = _integers(state.get("outer", []))
    if not known:
        return []
    name, value = rng.choice(known)
    return [f"frame {state['level']}", f"set variable {name} = {value}", f"print {name}"]


def _look(rng: random.Random, state: State, build: Build) -> Lines:
    return rng.choice((["backtrace"], ["backtrace 3"], ["backtrace -full 4"], ["up", "info locals"], ["info frame"]))


def _tidy(rng: random.Random, state: State, build: Build) -> Lines:
    return rng.choice((["delete", "next"], ["delete", "step"]))


_MENU: tuple[tuple[_Choice, int], ...] = (
    (_next, 12),
    (_step, 14),
    (_stepi, 8),
    (_always("finish"), 6),
    (_up_and, 5),
    (_until, 3),
    (_advance, 4),
    (_continue, 8),
    (_caller_condition, 2),
    (_commands_that_select, 3),
    (_local_condition, 3),
    (_python_stop, 3),
    (_watch, 3),
    (_watch_outer, 2),
    (_record, 2),
    (_return, 2),
    (_jump, 1),
    (_call, 2),
    (_call_that_stops, 4),
    (_exceptions, 5),
    (_signals, 5),
    (_thread, 5),
    (_locking, 1),
    (_assign, 2),
    (_look, 4),
    (_tidy, 2),
)
