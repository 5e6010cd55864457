"""Runs LLDB at a terminal and types commands."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect

from tests.hanging import HANG
from tests.lldb.debuggers import PLUGIN
from tests.lldb.driver import START, check, end, environment
from tests.terminals import close
from tests.transcripts import Transcript
from tests.waiting import wait_until_idle, wait_until_it_worked

SECONDS = HANG
PROMPT = "(lldb) "
_EDITRC = Path(__file__).parent / "editrc"
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[78=>]|\r")


class Terminal:
    """One session; every answer of LLDB is checked for text that must never appear."""

    def __init__(self, child: pexpect.spawn) -> None:
        self._child = child
        self._commands = 0

    def run(self, command: str) -> str:
        """Type a command and return the output until LLDB is ready for the next one."""
        self.type(command)
        return self.answer()

    def launch(self, *arguments: str) -> None:
        """Start the program and return when it has reached a breakpoint.

        On a busy machine, LLDB can also show the stop before the program's first instruction, and then continues.
        """
        self._run_until("stop reason = breakpoint .*frame #0: ", " ".join(["process launch --", *arguments]))

    def resume(self, command: str) -> None:
        """Type a command that lets the process run, and return when LLDB has shown that it stopped."""
        self._run_until("stop reason = .*frame #0: ", command)

    def advance(self, command: str) -> str:
        """Do the same if the process may end, or the command may be refused; return the output from then on."""
        return self._run_until(r"stop reason = .*frame #\d+: |exited with status|error: ", command)

    def _run_until(self, pattern: str, command: str) -> str:
        self.type(command)
        self._child.expect(pattern)
        stopped: str = self._child.after
        return stopped + self.answer()

    def interrupted(self, command: str, seen: str) -> str:
        """Type a command, press Ctrl-C while it runs, and return the output until LLDB is ready.

        :param seen: output before Ctrl-C is pressed; empty: there is no output before the end.
        """
        self.type(command)
        if seen:
            self._child.expect_exact(seen)
        else:
            # Pressed at the prompt, it can make LLDB 23.1 ignore the keyboard, with and without the plugin.
            wait_until_it_worked(self._child.pid, 0.1)
        self._child.sendintr()
        wait_until_idle(self._child.pid)  # Ctrl-C discards text that is typed but not yet read
        return self.answer()

    def type(self, *commands: str) -> None:
        """Type commands without reading the output meanwhile."""
        for command in commands:
            self._child.sendline(command)

    def answer(self) -> str:
        """Return the output until LLDB has executed all typed commands.

        The prompt is no sign of this: LLDB draws it again whenever it prints something.
        """
        self._commands += 1
        self._child.sendline(f"script print('done', {self._commands}, sep='-')")
        self._child.expect_exact(f"done-{self._commands}")
        said = _CONTROL.sub("", self._child.before)
        check(said)
        return said


def typed(path: Path) -> str:
    """Return a path as a session can type it: from the current folder.

    The line editor of LLDB 23.1 loses bytes of characters that are not ASCII, which the folders above may have.
    """
    return os.path.relpath(path)


def typed_import() -> str:
    """Return the command that loads the plugin, as a session can type it."""
    return f'command script import "{typed(PLUGIN)}"'


@contextmanager
def terminal(lldb: str, *arguments: str, init: bool = False, **more: str) -> Iterator[Terminal]:
    """Yield a session, which is always ended afterwards."""
    words = [*([] if init else ["--no-lldbinit"]), "--no-use-colors", *START, *arguments]
    child = pexpect.spawn(
        lldb,
        words,
        env=environment(lldb, EDITRC=str(_EDITRC), **more),
        encoding="utf-8",
        codec_errors="replace",
        timeout=SECONDS,
        dimensions=(60, 300),
        echo=False,
    )
    child.logfile = Transcript([lldb, *words])
    child.delaybeforesend = None  # that is for programs that are about to switch the echo off
    try:
        child.expect_exact(PROMPT)
        session = Terminal(child)
        # Otherwise the process gets the text that is typed while it runs.
        session.run("settings set target.disable-stdio true")
        session.run("settings set interpreter.prompt-on-quit false")
        yield session
        child.sendline("quit")
        child.expect(pexpect.EOF)
        check(child.before)
        child.wait()
        assert child.signalstatus is None, f"LLDB ended with {signal.Signals(child.signalstatus).name}"
    finally:
        end(child.pid)
        close(child)
