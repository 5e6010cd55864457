"""`sframe convert`: for code that only SFrame describes, LLDB's own frames equal those by the compiler's CFI."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from lab.drive.dimensions import NO_CFI, corner
from lab.drive.makings import Making, made
from tests.lldb.debuggers import find
from tests.lldb.driver import IMPORT, batch
from tests.missing import toolchain_needed

MOVES = ("bt", "thread step-inst-over", "bt", *("finish", "bt", "register read rbp") * 2)


def stripped_program() -> Making:
    """Build a program without symbols, and the same code with its CFI."""
    with toolchain_needed():
        return made(corner(tables=NO_CFI, symbols="stripped", position="fixed", level="O0"), 0, is_gdb=False)


def run(lldb: str, program: Path, *commands: str, path: str = os.environ["PATH"]) -> str:
    """Return LLDB's output."""
    words = [part for command in commands for part in ("-o", command)]
    return batch(lldb, *words, str(program), status=None, PATH=path)


def places(said: str) -> list[tuple[str, ...]]:
    """Return number and pc of each frame, and the frame pointers that were read."""
    return re.findall(r"frame #(\d+): (0x[0-9a-f]+)|rbp = (0x[0-9a-f]+)", said)


def moves(functions: tuple[str, ...], *before: str) -> list[str]:
    """Return commands that start the program twice: LLDB keeps the CFI for the second process."""
    stops = [f"breakpoint set -a {place[1:]}" for place in functions[:6]]
    start = "process launch -s -o /dev/null"
    return [start, *stops, *before, "continue", *MOVES, "process kill", start, "continue", *MOVES]


@pytest.mark.usefixtures("fixed_addresses")
def test_frames_are_those_of_the_compilers_cfi(lldb: str) -> None:
    making = stripped_program()
    given = moves(making.program.functions, "sframe mode off", "sframe status", "sframe convert", "sframe status")
    shown = run(lldb, making.file, IMPORT, *given)
    assert shown.count(f"so that 'sframe compare' has nothing else to compare with: {making.file.name}\n") == 1
    assert re.search(r"CFI made from SFrame for \d\d functions", shown)
    assert "[synthetic]" not in shown
    expected = run(lldb, making.whole, *moves(making.program.functions))
    assert len(places(expected)) > 40
    assert places(shown) == places(expected)


def test_what_is_not_converted(lldb: str) -> None:
    stripped = stripped_program()
    with toolchain_needed():
        debug = made(corner(tables=NO_CFI, position="fixed", level="O0"), 0, is_gdb=False)
    said = run(lldb, stripped.file, IMPORT, "sframe convert", "sframe convert", "sframe convert libother.so")
    assert said.count("CFI made from SFrame for ") == 1
    assert "LLDB has CFI made from SFrame" in said
    assert "no module 'libother.so' has a section .sframe" in said
    assert "debug information" in run(lldb, debug.file, IMPORT, "sframe convert")
    commands = ("sframe convert", f"sframe convert {stripped.whole.name}")
    said = run(lldb, stripped.whole, IMPORT, *commands)
    assert said.count("no function is described by SFrame alone") == 1
    assert said.count("there is CFI for each function that SFrame describes") == 1


def test_python_without_packages() -> None:
    # LLDB's Python uses the packages of the first python3 in PATH.
    said = run(find("22.1"), stripped_program().file, IMPORT, "sframe convert", path="/usr/bin:/bin")
    assert "CFI made from SFrame for " in said
