"""A client's side of a debugger: reads its output until an expected text is there, or the time is up."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Callable, TypeVar

from tests.hanging import HANG
from tests.transcripts import Transcript

SECONDS = HANG
"""Time limit for an answer."""
Found = TypeVar("Found")


class Process:
    """A debugger that speaks a protocol on its standard streams."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        self.unread = b""
        self._transcript = Transcript(command)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(folder / "errors.txt").open("wb"),
            env=dict(environment),
            cwd=folder,
            start_new_session=True,
        )
        self._errors = folder / "errors.txt"

    def send(self, text: bytes) -> None:
        """Write to the debugger."""
        assert self._process.stdin is not None
        self._transcript.write(text)
        self._process.stdin.write(text)
        self._process.stdin.flush()

    def read(self, take: Callable[[bytes], tuple[Found, bytes] | None]) -> Found:
        """Read until `take` finds something in the output.

        :param take: gets the unread output, and returns the found part and the rest; ``None``: not yet.
        """
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        deadline = time.monotonic() + SECONDS
        while (found := take(self.unread)) is None:
            left = deadline - time.monotonic()
            ready = select.select([descriptor], [], [], max(left, 0))[0]
            assert ready, f"no answer: {self._tail()}"
            part = os.read(descriptor, 65536)
            assert part, f"the debugger ended: {self._tail()}"
            self._transcript.write(part)
            self.unread += part
        self.unread = found[1]
        return found[0]

    def errors(self) -> str:
        """Return the text on standard error."""
        return self._errors.read_text(encoding="utf-8", errors="replace")

    def _tail(self) -> str:
        return f"{self.unread[-1500:]!r} {self.errors()[-1500:]}"

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the debugger and its children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(BrokenPipeError):
                if stream is not None:
                    stream.close()
