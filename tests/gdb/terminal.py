"""Runs GDB at a terminal, for behaviour that depends on one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect

from tests.gdb.driver import Debugger, GdbFailed, check_output, command_line, environment
from tests.hanging import HANG
from tests.terminals import close
from tests.transcripts import Transcript
from tests.waiting import wait_until_idle

PROMPT = "(gdb) "
SECONDS = HANG


class Terminal:
    """Types at GDB's prompt and reads its output."""

    def __init__(self, child: pexpect.spawn) -> None:
        self._child = child
        self.shown = ""
        """All output so far."""
        self._marks = 0

    @property
    def process(self) -> int:
        """Return GDB's process id."""
        return int(self._child.pid)

    def wait(self, text: str = PROMPT) -> str:
        """Return the output up to a text, which must appear in time."""
        try:
            self._child.expect_exact(text, timeout=SECONDS)
        except (pexpect.TIMEOUT, pexpect.EOF) as error:
            shown = self.shown + str(self._child.before)
            raise GdbFailed(f"{type(error).__name__} in the place of {text!r}:\n{shown[-3000:]}") from None
        before = str(self._child.before).replace("\r\n", "\n")
        self.shown += before + text
        check_output(self.shown)
        return before

    def run(self, command: str) -> str:
        """Return the output of a command."""
        self.type(command + "\n")
        return self.wait().partition("\n")[2]

    def type(self, keys: str) -> None:
        """Press keys."""
        self._child.send(keys)

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self._child.sendintr()

    def interrupted(self) -> str:
        """Press Ctrl-C and return the output until GDB has executed all that was typed.

        A prompt is no sign of this: if the command has just ended, another one follows for Ctrl-C.
        """
        self.interrupt()
        shown = self.wait()
        wait_until_idle(self.process)  # Ctrl-C discards text that is typed but not yet read
        self._marks += 1
        self.type(f"python print('ready', {self._marks}, sep='-')\n")
        shown += self.wait(f"ready-{self._marks}")
        self.wait()
        return shown

    def after_tab(self, typed: str, expected: str) -> str:
        """Return the line after typing a text and pressing TAB; the line is then discarded."""
        self.type(f"{typed}\t")
        before = self.wait(expected)
        self.interrupt()
        self.wait()
        return before + expected


@contextmanager
def terminal(debugger: Debugger, executable: Path | None = None, *commands: str) -> Iterator[Terminal]:
    """Yield a GDB with the plugin at its prompt; afterwards end it and the debugged program."""
    arguments = [part for command in commands for part in ("-ex", command)]
    path, *rest = command_line(debugger, *arguments, *([str(executable)] if executable else []))
    env = {**environment(), "INPUTRC": "/dev/null", "COLUMNS": "200", "LINES": "50"}
    child = pexpect.spawn(path, rest, env=env, encoding="utf-8", codec_errors="replace", dimensions=(50, 200))
    child.logfile_read = Transcript([path, *rest])
    try:
        session = Terminal(child)
        session.wait()
        yield session
    finally:
        close(child)


def plain(text: str) -> str:
    """Return text without control sequences for the cursor and colours."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x07", "", text)
