"""Scripted sessions with interactions of a debugger and a program that the random commands do not cover.

These are processes that fork and run other programs, signal handlers on their own stacks, a library that is replaced
while the program runs, a process to which the debugger attaches, a checkpoint, and two machines at once.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.drive import gdb_commands, lldb_commands, session
from lab.drive.building import built
from lab.drive.debuggers import Debugger
from lab.drive.menu import Lines
from lab.drive.programs import PROGRAMS, Build, Program
from lab.drive.scene import FIXED_MEMORY, Scene, arguments
from tests.samples.build import build as build_sample
from tests.samples.catalogue import ABIS

Script = Sequence[Sequence[str]]

_PROCESSES = Program("processes", ("main",), sources=("processes.c",))
_HANDLERS = Program("handlers", ("main",), sources=("handlers.c",))
_WAITING = Program("waiting", ("main",), sources=("waiting.c",))
_LIBRARIES = Program("libraries", ("main",), sources=("libraries.c",), libraries=("part_small.c", "part_large.c"))


@dataclass(frozen=True)
class Situation:
    """A program, and the lines for GDB and for LLDB."""

    program: Program
    gdb: Script = ()
    """Empty: GDB has no such feature."""
    lldb: Script = ()
    starts: bool = True
    """Whether the program is started, and stopped at `main`, before the lines are typed."""
    level: str = "O1"


_WALK = [["backtrace"], ["step 3"], ["up", "info locals"], ["stepi 3"], ["next"], ["finish"], ["up", "finish"]]
_LLDB_WALK = [["bt"], ["step", "step", "step"], ["up", "frame variable"], ["stepi", "stepi", "stepi"], ["next"]]
_LLDB_WALK = [*_LLDB_WALK, ["finish"], ["frame select 1", "finish"]]


def _until(function: str) -> list[str]:
    return [f"tbreak {function}", "continue"]


def _lldb_until(function: str) -> list[str]:
    return [f"breakpoint set -o true -n {function}", "continue"]


_AWAIT_PAUSE = "while test -d /proc/$(cat pid) && ! grep -q '^State:.S' /proc/$(cat pid)/status; do sleep 0.01; done"
_RUN_ALONE = f"setarch -R {{}} > output.txt 2>&1 < /dev/null & echo $! > pid; {_AWAIT_PAUSE}"
_AWAIT_SOCKET = "while ! test -S socket; do sleep 0.1; done"
_EMULATOR = " ".join((*ABIS["aarch64"].emulator, *FIXED_MEMORY))
_EMULATE = f"setarch -R {_EMULATOR} -g socket {{}} > /dev/null 2>&1 & {_AWAIT_SOCKET}"
_EMULATE_OTHER = _EMULATE.format("'{other}'")
_ATTACH = 'python gdb.execute("attach " + open("pid").read().strip())'
_LLDB_ATTACH = 'script lldb.debugger.HandleCommand("process attach -p " + open("pid").read().strip())'
_LLDB_SIGNAL = 'script os.system("kill -USR1 $(cat pid)")'
_LLDB_CONNECT = 'script import os; lldb.debugger.HandleCommand(f"process connect unix-connect://{os.getcwd()}/socket")'

SITUATIONS = {
    "fork-child": Situation(
        _PROCESSES,
        [["set follow-fork-mode child"], _until("in_child"), *_WALK[:-1]],
        [["settings set target.process.follow-fork-mode child"], _lldb_until("in_child"), *_LLDB_WALK[:-1]],
    ),
    "fork-parent": Situation(
        _PROCESSES,
        [["set follow-fork-mode parent"], ["break in_child"], _until("in_parent"), *_WALK],
        [["breakpoint set -n in_child"], _lldb_until("in_parent"), *_LLDB_WALK],
    ),
    "fork-both": Situation(
        _PROCESSES,
        [
            ["set detach-on-fork off", "set schedule-multiple off"],
            *(["break in_parent"], ["break in_child"], ["catch fork"], ["continue"], ["backtrace"], ["stepi 3"]),
            *(["inferior 2"], ["backtrace"], ["continue"], *_WALK[:-1], ["inferior 1"], ["backtrace"], ["stepi 2"]),
            *(["inferior 2"], ["next"], ["delete", "continue"], ["inferior 1"], ["tbreak in_parent", "continue"]),
            *_WALK,
        ],
    ),
    "vfork-child": Situation(
        _PROCESSES,
        [["tbreak vforked"], ["continue"], ["set follow-fork-mode child"], _until("in_child"), *_WALK[:-1]],
    ),
    "exec": Situation(
        _PROCESSES,
        [["tbreak executed"], ["catch exec"], ["continue"], ["backtrace"], ["continue"], *_WALK, ["continue"]],
        [["breakpoint set -n executed"], ["continue"], ["bt"], ["continue"], *_LLDB_WALK],
    ),
    "exec-child": Situation(
        _PROCESSES,
        [_until("child_executes"), ["set follow-fork-mode child"], _until("executed"), *_WALK],
        [
            _lldb_until("child_executes"),
            ["settings set target.process.follow-fork-mode child"],
            ["breakpoint set -n executed"],
            *(["continue"], ["bt"], ["continue"], *_LLDB_WALK),
        ],
    ),
    "handlers": Situation(
        _HANDLERS,
        [
            ["handle SIGUSR1 SIGUSR2 SIGSEGV nostop noprint pass"],
            *(["break on_inner"], ["continue"], ["backtrace"], ["finish"], ["up 2", "info locals"], ["finish"]),
            *(["stepi"], ["stepi"], ["stepi"], ["next"], ["next"], ["up", "finish"]),
            *(_until("on_fault"), ["backtrace"], ["up 2", "info locals"], ["next"], ["next"], ["next"]),
            *(["break on_user"], ["continue"], ["backtrace"], ["up 2", "finish"], ["continue"], ["continue"]),
            *(_until("on_fault"), ["backtrace"], ["stepi 4"], ["up", "up", "info frame"], ["continue"]),
        ],
        [
            ["process handle SIGUSR1 SIGUSR2 SIGSEGV -s false -n false -p true"],
            *(["breakpoint set -n on_inner"], ["continue"], ["bt"], ["finish"], ["frame select 2", "frame variable"]),
            *(["finish"], ["stepi"], ["stepi"], ["stepi"], ["next"], ["next"], ["frame select 1", "finish"]),
            *(_lldb_until("on_fault"), ["bt"], ["frame select 2", "frame variable"], ["next"], ["next"], ["next"]),
            *(["breakpoint set -n on_user"], ["continue"], ["bt"], ["continue"], ["continue"]),
            *(_lldb_until("on_fault"), ["bt"], ["stepi", "stepi"], ["up", "up"], ["continue"]),
        ],
    ),
    "calls-that-stop": Situation(
        _HANDLERS,
        [
            ["handle SIGUSR1 SIGUSR2 nostop noprint pass"],
            _until("interrupted"),
            *(["break note"], ["print interrupted(1)"], ["backtrace"], ["print interrupted(0)"], ["backtrace"]),
            *(["finish"], ["next"], ["up", "info locals"], ["delete"], ["finish"], ["finish"], ["finish"]),
            *(["print aborting(2)"], ["backtrace"], ["up 3", "info locals"], ["print note(1)"], ["frame 4", "next"]),
        ],
        [
            ["process handle SIGUSR1 SIGUSR2 -s false -n false -p true"],
            _lldb_until("interrupted"),
            *(["breakpoint set -n note"], ["expression -i false -u false -- interrupted(1)"], ["bt"]),
            *(["expression -i false -u false -- interrupted(0)"], ["bt"], ["finish"], ["next"]),
            *(["up", "frame variable"], ["breakpoint delete -f", "finish"], ["finish"], ["finish"]),
            *(["expression -u false -- aborting(2)"], ["bt"], ["frame select 3", "frame variable"]),
        ],
    ),
    "calls-that-are-unwound": Situation(
        _HANDLERS,
        [
            ["set unwindonsignal on"],
            _until("faulting"),
            *(["print aborting(2)"], ["backtrace"], ["print faulting(0)"], ["backtrace"], ["finish"], ["next"]),
        ],
        [
            _lldb_until("faulting"),
            *(["expression -u true -- aborting(2)"], ["bt"], ["expression -u true -- faulting(0)"], ["bt"]),
        ],
    ),
    "record-handlers": Situation(
        _HANDLERS,
        [
            ["handle SIGUSR1 SIGUSR2 nostop noprint pass"],
            *(_until("interrupted"), ["record"], _until("on_inner"), ["reverse-finish"], ["backtrace"]),
            *(["reverse-step"], ["reverse-step"], ["backtrace"], ["reverse-next"], ["reverse-stepi 5"], ["backtrace"]),
            *(["reverse-finish"], ["reverse-continue"], ["next"], ["finish"], ["record stop"]),
        ],
    ),
    "checkpoint": Situation(
        PROGRAMS["calls"],
        [
            *(_until("twice"), ["checkpoint"], ["finish"], ["next"], ["restart 1"], ["backtrace"], ["step"]),
            *(["finish"], ["checkpoint"], ["next"], ["restart 0"], ["backtrace"], ["delete checkpoint 1"], ["next"]),
        ],
    ),
    "software-watchpoints": Situation(
        _HANDLERS,
        [
            ["handle SIGUSR1 SIGUSR2 nostop noprint pass", "set can-use-hw-watchpoints 0"],
            *(_until("note"), ["watch handled"], ["continue"], ["continue"], ["backtrace"], ["delete"]),
            *(_until("interrupted"), ["next"], ["watch mine"], ["continue"], ["backtrace"], ["continue"]),
        ],
        level="O0",
    ),
    "non-stop": Situation(
        PROGRAMS["handoff"],
        [
            ["set non-stop on", "set pagination off"],
            *(["tbreak main", "run > output.txt"], _until("work"), ["backtrace"], ["break work thread 2", "continue"]),
            *(["thread 2"], ["backtrace"], ["up", "info locals"], ["next"], ["step"], ["finish"], ["finish"]),
            *(["thread 1"], ["thread 3"], ["thread 2"]),
        ],
        starts=False,
    ),
    "locked": Situation(
        PROGRAMS["handoff"],
        [
            *(["break work"], ["continue"], ["continue"], ["set scheduler-locking on"], ["backtrace"], ["next"]),
            *(["thread 1"], ["backtrace"], ["stepi"], ["thread 2"], ["up", "info locals"]),
            *(["set scheduler-locking replay"], ["thread apply all backtrace 3"]),
        ],
    ),
    "attach": Situation(
        _WAITING,
        [
            [f"shell {_RUN_ALONE}", _ATTACH, "handle SIGUSR1 nostop noprint pass"],
            *(["backtrace"], ["tbreak note", "signal SIGUSR1"], *_WALK),
            *(
                ["backtrace"],
                ["detach", f"shell {_AWAIT_PAUSE}"],
                [_ATTACH],
                ["backtrace"],
                ["tbreak on_user", "signal SIGUSR1"],
                *_WALK,
            ),
            *(["kill"],),
        ],
        [
            [f'script import os; os.system("{_RUN_ALONE}")', _LLDB_ATTACH],
            ["process handle SIGUSR1 -s false -n false -p true"],
            *(["bt"], ["breakpoint set -o true -n note", _LLDB_SIGNAL, "continue"], *_LLDB_WALK[:-1]),
            *(["detach", f'script import os; os.system("{_AWAIT_PAUSE}")'], [_LLDB_ATTACH], ["bt"], ["frame select 2"]),
            *(["breakpoint set -o true -n on_user", _LLDB_SIGNAL, "continue"], *_LLDB_WALK[:-1]),
        ],
        starts=False,
    ),
    "libraries": Situation(
        _LIBRARIES,
        [
            *(["break note"], ["continue"], *_WALK, ["continue"], *_WALK, ["continue"], ["backtrace"], ["continue"]),
            *(["backtrace"], ["finish"], ["up 2", "info locals"], ["finish"], ["next"]),
        ],
        [
            *(["breakpoint set -n note"], ["continue"], *_LLDB_WALK, ["continue"], *_LLDB_WALK, ["continue"], ["bt"]),
            *(["continue"], ["bt"], ["finish"], ["frame select 2", "frame variable"], ["finish"], ["next"]),
        ],
    ),
    "two-machines": Situation(
        PROGRAMS["calls"],
        [
            *(_until("add"), ["add-inferior"], ["inferior 2"], ['file "{other}"']),
            *([f"shell {_EMULATE_OTHER}", "target remote socket"], ["break inner"], ["continue"]),
            *(["backtrace"], ["inferior 1"], ["backtrace"], ["finish"], ["inferior 2"], ["finish"], ["backtrace"]),
            *(["stepi"], ["up", "info locals"], ["inferior 1"], ["step"], ["next"], ["inferior 2"], ["next"]),
            *(["info frame"], ["kill"], ["inferior 1"], ["backtrace"], ["finish"]),
        ],
        [
            *(_lldb_until("add"), ['target create "{other}"']),
            *([f'script import os; os.system("{_EMULATE_OTHER}")', _LLDB_CONNECT],),
            *(["breakpoint set -n inner", "continue"], ["bt"], ["target select 0"], ["bt"], ["finish"]),
            *(["target select 1"], ["finish"], ["bt"], ["stepi"], ["up", "frame variable"], ["target select 0"]),
            *(["step"], ["next"], ["target select 1"], ["next"], ["process kill"], ["target select 0"], ["bt"]),
        ],
    ),
}


class _Scene(Scene):
    def __init__(self, situation: Situation, debugger: Debugger, terminal: bool) -> None:
        build = Build(situation.program, situation.level)
        super().__init__(debugger, build, built(build), terminal)
        self._starts = situation.starts

    def start(self, _rng: random.Random) -> Lines:
        if not self._starts:
            return []
        start_at = gdb_commands.start_at if self.debugger.is_gdb else lldb_commands.start_at
        return start_at(self.build, arguments(self.build), "main")


def run(name: str, debugger: Debugger, modes: Sequence[str], terminal: bool = False) -> session.Outcome:
    """Run a situation in modes; KeyError: there is none with that name."""
    situation = SITUATIONS[name]
    scene = _Scene(situation, debugger, terminal)
    script = situation.gdb if debugger.is_gdb else situation.lldb
    return session.compared(scene, 0, modes, script=_filled(script, scene.executable))


def _filled(script: Script, executable: Path) -> Script:
    if not any("{" in line for lines in script for line in lines):
        return script
    other = build_sample("leaf", "aarch64")
    return [[line.replace("{other}", str(other)).replace("{}", str(executable)) for line in lines] for lines in script]
