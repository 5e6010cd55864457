"""Functions with SFrame and with CFI in `.debug_frame`: all output of LLDB is as without the plugin."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.gdb.debug_frame_builds import BUILDS
from tests.lldb.debuggers import PROVIDING, find
from tests.lldb.driver import IMPORT, batch

LOOKS = ("bt", *("frame variable", "register read", "up") * 3)
MOVES = ("thread step-inst", "continue", "continue", "finish", "thread step-inst", "next", "step", "thread step-out")
_CHANGING = re.compile(r"Process \d+|jmp_buf = .*")
"""Text that differs between two runs: glibc combines addresses in a `jmp_buf` with a random word."""
_BY_EVENT = "1 location added to breakpoint "
"""LLDB prints this when it handles an event, before or after the line of `run`: such lines are compared at the end."""


def session(lldb: str, path: Path, place: str, *before: str) -> list[str]:
    """Return LLDB's output from the start of a program on."""
    commands = [*before, f"breakpoint set -n {place}", "run", *LOOKS]
    for move in MOVES:
        commands += [move, *LOOKS]
    # LLDB alone cannot step out of `main` in each build, depending on its code, and then ends with status 1.
    said = batch(lldb, *(word for command in commands for word in ("-o", command)), str(path), status=None)
    lines = [_CHANGING.sub("", line) for line in said.partition("(lldb) breakpoint set")[2].splitlines()]
    return sorted(lines, key=lambda line: line.startswith(_BY_EVENT))


@pytest.mark.parametrize("build", [name for name in BUILDS if name not in ("pie", "fixed")])
@pytest.mark.parametrize("version", PROVIDING)
@pytest.mark.usefixtures("fixed_addresses")
def test_item_33_all_is_as_without_the_plugin(version: str, build: str, tmp_path: Path) -> None:
    path, lldb = BUILDS[build](tmp_path), find(version)
    # Before the start, LLDB knows only those functions in a library that the program calls.
    place = "middle" if build == "library" else "leaf"
    without = session(lldb, path, place)
    assert sum("frame #" in line for line in without) > 70
    for mode in ("fallback", "always"):
        assert session(lldb, path, place, IMPORT, f"sframe mode {mode}") == without, f"mode {mode}"
