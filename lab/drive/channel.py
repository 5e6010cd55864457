"""Runs a debugger as a process: gives it lines, reads its output, and notices if it hangs or ends."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.drive import packets
from tests.transcripts import Transcript

OUTPUT = "output.txt"
"""Name of the program's output file, in its working folder."""
_STATES = "states.json"
_VARIABLE = "DRIVE_STATES"
"""The environment variable with the file for the states, different in each session."""
_LINE = 1000
"""Maximum number of characters that are kept of one line of output."""


_BOUNDED = ("setpriv", "--pdeathsig", "KILL", "prlimit", f"--data={8 << 30}")
"""Ends a debugger with us, however that is, and bounds its memory in bytes: LLDB 22.1 alone once took 22 GB."""


class Hang(Exception):  # noqa: N818 - an outcome
    """The debugger did not answer in time; the message has the end of its output."""


class Died(Exception):  # noqa: N818 - an outcome
    """The debugger ended unexpectedly or cannot go on; the message says so, with the end of its output."""


class Channel:
    """A running debugger in a folder of its own.

    :param terminal: it has one.
    :param waiting: type each line only when the program has stopped; at a terminal, LLDB does not wait.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        terminal: bool = False,
        waiting: bool | None = None,
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="drive-")
        self.folder = Path(self._folder.name)
        (self.folder / OUTPUT).touch()
        self._states = self.folder / _STATES
        self._states.touch()
        self._number = 0
        self._waits = 0
        self._unread = b""
        self.transcript = ""
        self._whole = Transcript(command)
        self._terminal = terminal
        self._waiting = terminal if waiting is None else waiting
        own, theirs = pty.openpty() if terminal else (-1, -1)
        self._process = subprocess.Popen(
            [*_BOUNDED, *command],
            stdin=theirs if terminal else subprocess.PIPE,
            stdout=theirs if terminal else subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**environment, _VARIABLE: str(self._states)},
            cwd=self.folder,
            start_new_session=True,
        )
        self.pid = self._process.pid
        """Process id of the debugger."""
        if terminal:
            os.close(theirs)
        self._in = own if self._process.stdin is None else self._process.stdin.fileno()
        self._out = own if self._process.stdout is None else self._process.stdout.fileno()

    def perform(self, lines: Sequence[str], full: bool, level: int, seconds: float) -> tuple[str, dict[str, Any]]:
        """Give lines to the debugger; return its output, and the state of the program afterwards.

        :param full: whether the state has the whole stack.
        :param level: the outer frame whose variables and registers are in the state.
        :raises Hang: it takes longer than `seconds`.
        :raises Died: the debugger has ended, or refuses to tell the state, as GDB's adapter does when it has lost track
            of a thread.
        """
        self._number += 1
        shown = self._give(lines, f"drive-state {self._number} {int(full)} {level}", seconds)
        told = json.loads(self._states.read_text(encoding="utf-8").splitlines()[-1])
        if told.pop("number") != self._number:
            raise Died(f"no state: {self._tail()}")
        told["output"] = (self.folder / OUTPUT).read_text(encoding="utf-8", errors="replace")
        return shown, {**told, **self._counts()}

    def _counts(self) -> dict[str, dict[str, int]]:
        """Return counts that belong to the state: for each kind of thing counted, the number of each name so far."""
        return {"packets": packets.counted(self.folder)}

    def _give(self, lines: Sequence[str], asked: str, seconds: float) -> str:
        """Give lines to the debugger, and then the one that requests the state; return its output."""
        shown = ""
        for line in lines if self._waiting else ():
            self._waits += 1
            self._write(f"{line}\ndrive-wait {self._waits}\n")
            shown += self._read_until(f"@@ready {self._waits}@@".encode(), seconds)
        self._write("".join(f"{line}\n" for line in (*(() if self._waiting else lines), asked)))
        return shown + self._read_until(self._mark(), seconds)

    def _mark(self) -> bytes:
        """Return the text that is printed when the state is written."""
        return f"@@state {self._number}@@".encode()

    def quit(self, seconds: float) -> None:
        """End the session as a user does.

        :raises Hang: it does not end.
        :raises Died: it ends with a signal or an error.
        """
        self._write("kill\nquit\n")
        self._await_end(seconds)

    def _await_end(self, seconds: float) -> None:
        """Wait until the debugger has ended.

        :raises Hang: it does not end.
        :raises Died: it ends with a signal or an error.
        """
        with contextlib.suppress(Died):
            self._read_until(None, seconds)
        status = self._process.wait()
        if status:
            raise Died(f"{_ending(status)} when told to quit: {self._tail()}")

    def processes(self) -> list[int]:
        """Return all processes of the session, the innermost first.

        Those that outlive the debugger, such as a gdbserver behind a pipe, are not descendants any more, but have the
        session's environment.
        """
        tops = (*_with_variable(f"{_VARIABLE}={self._states}"), self._process.pid)
        return list(dict.fromkeys(process for top in tops for process in (*_descendants(top), top)))

    def close(self) -> None:
        """End all processes of the session."""
        for process in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        if self._terminal:
            os.close(self._in)
        self._folder.cleanup()

    def _write(self, text: str) -> None:
        self._whole.write(text)
        with contextlib.suppress(OSError):  # the cause of its end is found when its output ends
            os.write(self._in, text.encode())

    def _read_until(self, mark: bytes | None, seconds: float) -> str:
        deadline = time.monotonic() + seconds
        while mark is None or mark not in self._unread:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._out], [], [], left)[0]:
                self.transcript += self._unread.decode(errors="replace")
                raise Hang(f"no answer within {seconds:.0f} s: {self._tail()}")
            try:
                read = os.read(self._out, 65536)
            except OSError:  # a terminal's error when no process has it open any more
                read = b""
            if not read:
                self.transcript += self._unread.decode(errors="replace")
                if mark is None:
                    raise Died("")
                raise Died(f"{_ending(self._process.wait())}: {self._tail()}")
            self._whole.write(read)
            self._unread += read
        before, _, self._unread = self._unread.partition(mark)
        text = before.decode(errors="replace")
        self.transcript += text
        return text

    def _read_bytes(self, size: int, seconds: float) -> bytes:
        """Read some number of bytes."""
        while len(self._unread) < size:
            if seconds <= 0 or not select.select([self._out], [], [], seconds)[0]:
                raise Hang(f"half an answer: {self._unread[-300:]!r}")
            read = os.read(self._out, 65536)
            if not read:
                raise Died(f"{_ending(self._process.wait())}: {self._unread[-300:]!r}")
            self._whole.write(read)
            self._unread += read
        taken, self._unread = self._unread[:size], self._unread[size:]
        self.transcript += taken.decode(errors="replace") + "\n"
        return taken

    def _tail(self) -> str:
        lines = [line for line in self.transcript.splitlines() if line.strip() and not line.startswith("@@")]
        return " | ".join(line[:_LINE] for line in lines[-4:])


def _ending(status: int) -> str:
    return f"ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"


def _descendants(process: int) -> list[int]:
    """Return the descendants of a process, the innermost first."""
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii").split()
    except OSError:
        return []
    return [found for child in map(int, children) for found in (*_descendants(child), child)]


def _with_variable(definition: str) -> list[int]:
    """Return the processes that have a variable in their environment, as ``NAME=value``."""
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if definition.encode() in environment.read_bytes().split(b"\0"):
                found.append(int(environment.parent.name))
    return found


_BROKEN = re.compile(
    r"Python Exception|Traceback \(most recent call last\)|internal-error|internal problem|internal error"
    r"|Error occurred in Python|A fatal error|submit a bug report|PLEASE"
)


def broken(text: str) -> str:
    """Return the part of a debugger's output that no user must see; empty: there is none."""
    found = _BROKEN.search(text)
    return text[found.start() :].splitlines()[0][:300] if found else ""
