"""Moves a program as people do, at a terminal: by the same random commands in each mode."""

from __future__ import annotations

import functools
import random
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.hanging import HANG
from tests.lldb.debuggers import CHECKOUT
from tests.lldb.terminal import Terminal, terminal, typed, typed_import
from tests.samples.build import toolchain

SOURCE = Path(__file__).parent / "stepping.cc"
STARTS = ("main", "attempt", "Adds::run", "nested<0>")
"""Functions with a breakpoint."""
COMMANDS = ("next", "next", "step", "step", "finish", "thread step-inst", "thread step-inst", "thread step-out")
ALWAYS, STRICT = "always", "strict"
_FRAME = re.compile(r"frame #(\d+): (0x[0-9a-f]+) (.*)")
_SYNTHETIC = "script print('synthetic', sum(f.IsSynthetic() for f in lldb.thread))"


class Step(NamedTuple):
    """One command, and the place of the program after it."""

    command: str
    frames: tuple[tuple[str, ...], ...]
    """Number, pc, and function with arguments and line, of each frame."""
    synthetic: int
    """Number of frames that are a script's."""


@functools.cache
def program(level: str = "-O2") -> Path:
    """Build the program to move, with SFrame version 3."""
    folder = CHECKOUT / ".cache" / "stepping"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"stepping{level}"
    if not path.exists() or path.stat().st_mtime < SOURCE.stat().st_mtime:
        tools = toolchain("amd64", 3)
        made = path.with_suffix(f".{random.randrange(1 << 30)}")
        flags = ["-g", level, "-std=c++17", "-pthread", "-Wa,--gsframe", "-fno-use-linker-plugin", f"-B{tools}/"]
        subprocess.run(["g++", *flags, "-o", str(made), str(SOURCE)], check=True, timeout=HANG)
        made.rename(path)
    return path


def drive(lldb: str, seed: int, mode: str, steps: int, level: str = "-O2") -> list[Step]:
    """Return the place of the program after each of so many commands; a program that ends is started again.

    `mode` is that of the plugin; `none`: it is not loaded; `strict`: mode `always` in which all frames are SFrame's.
    """
    drawn = random.Random(seed)
    done = []
    with terminal(lldb) as session:
        if mode != "none":
            session.run(typed_import())
            session.run("sframe strict on" if mode == STRICT else f"sframe mode {mode}")
        session.run(f'target create "{typed(program(level))}"')
        for name in STARTS:
            session.run(f"breakpoint set -n {name}")
        session.launch()
        for _ in range(steps):
            done.append(_step(session, drawn.choice(COMMANDS)))
    return done


def _step(session: Terminal, command: str) -> Step:
    if "exited with status" in session.advance(command):
        session.launch()
    # LLDB can draw the prompt, and the typed text at it, before or after its output.
    said = session.run("bt")
    shown = next((part for part in reversed(said.split("* thread #")) if _FRAME.search(part)), None)
    assert shown, said
    synthetic = re.search(r"synthetic (\d+)", session.run(_SYNTHETIC))
    assert synthetic, shown
    return Step(command, tuple(match.groups() for match in _FRAME.finditer(shown)), int(synthetic[1]))
