"""GDB's text user interface: the screens with and without the plugin are equal, character for character."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pexpect
import pyte
import pytest

from lab.drive.building import built
from lab.drive.programs import named
from tests.clients.homes import gdb_environment
from tests.gdb.conftest import debugger as debugger
from tests.gdb.driver import Debugger
from tests.hanging import HANG
from tests.pairing import paired
from tests.terminals import close
from tests.transcripts import Transcript
from tests.waiting import wait_until_idle

ROWS, COLUMNS = 40, 120
BEFORE = ("break twice", "run >/dev/null", "tui enable", "layout src")
"""Commands before there are windows: until then, the line that the plugin prints when loaded is on the screen."""
COMMANDS = ("next", "step", "up", "layout asm", "stepi", "layout regs", "finish", "focus cmd", "info locals", "bt")


class Screen:
    """A terminal in which GDB runs."""

    def __init__(self, debugger: Debugger, home: Path, plugin: bool) -> None:
        environment = {**gdb_environment(home, plugin, ["set style enabled off"]), "TERM": "xterm"}
        program = str(built(named("calls-O2")))
        self._child = pexpect.spawn(
            debugger.path, ["-q", program], env=environment, dimensions=(ROWS, COLUMNS), timeout=HANG
        )
        self._child.logfile_read = Transcript([debugger.path, "-q", program])
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)

    def type(self, command: str) -> list[str]:
        """Type a command and return the lines of the screen when it is complete."""
        self._child.sendline(command)
        # Until the command is shown, the prompt before it looks like the one after its answer.
        self._stream.feed(self._child.read_nonblocking(65536, HANG))
        return self.settled()

    def settled(self) -> list[str]:
        """Return the lines of the screen when the last line is a prompt, and GDB waits and has nothing left to draw."""
        while True:
            lines = self._drawn()
            if lines[self._screen.cursor.y] != "(gdb)":
                self._stream.feed(self._child.read_nonblocking(65536, HANG))
                continue
            wait_until_idle(self._child.pid)
            if self._drawn() == lines:
                return [_masked(line) for line in lines]

    def _drawn(self) -> list[str]:
        """Return the lines of the screen with all that GDB has written so far."""
        with contextlib.suppress(pexpect.TIMEOUT):
            while True:
                self._stream.feed(self._child.read_nonblocking(65536, 0))
        return [line.rstrip() for line in self._screen.display]

    def close(self) -> None:
        """End the session."""
        close(self._child)


def _masked(line: str) -> str:
    return re.sub(r"\b(process|LWP) \d+", r"\1 N", line)


def screens(debugger: Debugger, home: Path, plugin: bool) -> list[list[str]]:
    """Return the screen after each command of a session."""
    screen = Screen(debugger, home, plugin)
    try:
        screen.settled()
        for command in BEFORE:
            screen.type(command)
        shown = [screen.type(command) for command in COMMANDS]
    finally:
        screen.close()
    return shown


@pytest.mark.usefixtures("fixed_addresses")
def test_the_screen_is_what_it_is_without_the_plugin(debugger: Debugger, tmp_path: Path) -> None:
    without = screens(debugger, tmp_path / "without", False)
    assert "calls.c" in without[0][0]  # the source window
    with_it = screens(debugger, tmp_path / "plugin_", True)
    for number, (expected, found) in enumerate(paired(without, with_it)):
        assert found == expected, COMMANDS[number]
