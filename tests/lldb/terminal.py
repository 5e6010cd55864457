"""Runs LLDB at a terminal and types commands."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect

from tests.lldb.driver import check, end, environment
from tests.waiting import wait_until_idle, wait_until_it_worked

SECONDS = 60
PROMPT = "(lldb) "
_EDITRC = Path(__file__).parent / "editrc"
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[78=>]|\r")


class Terminal:
    """One session; every answer of LLDB's is checked for what must never be in it."""

    def __init__(self, child: pexpect.spawn) -> None:
        self._child = child
        self._commands = 0

    def run(self, command: str) -> str:
        """Type a command and return what is shown until LLDB is ready for the next one."""
        self.type(command)
        return self.answer()

    def launch(self, *arguments: str) -> None:
        """Start the program and return when it has reached a breakpoint.

        On a busy machine LLDB can show the stop before the program's first instruction as well, and then goes on.
        """
        self._run_until("stop reason = breakpoint .*frame #0: ", " ".join(["process launch --", *arguments]))

    def resume(self, command: str) -> None:
        """Type a command that lets the process run, and return when LLDB has shown that it stopped."""
        self._run_until("stop reason = .*frame #0: ", command)

    def advance(self, command: str) -> str:
        """Likewise, where the process may end, or the command be refused; return what is shown from then on."""
        return self._run_until(r"stop reason = .*frame #\d+: |exited with status|error: ", command)

    def _run_until(self, pattern: str, command: str) -> str:
        self.type(command)
        self._child.expect(pattern)
        stopped: str = self._child.after
        return stopped + self.answer()

    def interrupted(self, command: str, seen: str) -> str:
        """Type a command, press Ctrl-C in its middle, and return what is shown until LLDB is ready.

        :param seen: what is shown by then; empty: nothing is shown before the end.
        """
        self.type(command)
        if seen:
            self._child.expect_exact(seen)
        else:
            # Pressed at the prompt it can cost LLDB 23.1 its keyboard, with and without the plugin.
            wait_until_it_worked(self._child.pid, 0.1)
        self._child.sendintr()
        wait_until_idle(self._child.pid)  # Ctrl-C takes with it what is typed but not yet read
        return self.answer()

    def type(self, *commands: str) -> None:
        """Type commands, without a look at what is shown meanwhile."""
        for command in commands:
            self._child.sendline(command)

    def answer(self) -> str:
        """Return what is shown until LLDB has done all that was typed.

        The prompt tells nothing: LLDB draws it again whenever it shows something meanwhile.
        """
        self._commands += 1
        self._child.sendline(f"script print('done', {self._commands}, sep='-')")
        self._child.expect_exact(f"done-{self._commands}")
        said = _CONTROL.sub("", self._child.before)
        check(said)
        return said


@contextmanager
def terminal(lldb: str, *arguments: str, init: bool = False, **more: str) -> Iterator[Terminal]:
    """A session that is over afterwards, come what may."""
    child = pexpect.spawn(
        lldb,
        [*([] if init else ["--no-lldbinit"]), "--no-use-colors", *arguments],
        env=environment(lldb, EDITRC=str(_EDITRC), **more),
        encoding="utf-8",
        codec_errors="replace",
        timeout=SECONDS,
        dimensions=(60, 300),
        echo=False,
    )
    child.delaybeforesend = None  # that is for programs that are about to switch the echo off
    try:
        child.expect_exact(PROMPT)
        session = Terminal(child)
        # Else what is typed while the process runs is the process's.
        session.run("settings set target.disable-stdio true")
        session.run("settings set interpreter.prompt-on-quit false")
        yield session
        child.sendline("quit")
        child.expect(pexpect.EOF)
        check(child.before)
        child.close()
        assert child.signalstatus is None, f"LLDB ended with {signal.Signals(child.signalstatus).name}"
    finally:
        end(child.pid)
        child.close(force=True)
