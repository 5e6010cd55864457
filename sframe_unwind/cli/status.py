"""Exit statuses and error messages of all commands."""

from __future__ import annotations

import contextlib
import sys

from sframe_unwind.report.terminal import printable

DONE = 0
NOT_ALL = 1
"""The command succeeded with a negative result: an address without SFrame data, or a disagreement."""
CANNOT = 2
"""The command failed."""
INTERRUPTED = 130
"""The status that a shell gives a program that SIGINT ended."""
PIPE_CLOSED = 141
"""The status that a shell gives a program that SIGPIPE ended: the reader of the output closed the pipe."""

TRACEBACK = "SFRAME_UNWIND_TRACEBACK"
"""Environment variable that requests the traceback of an internal error."""


def internal_error(error: Exception) -> str:
    """Return the message for an exception that is not an error of the input."""
    return f"internal error: {type(error).__name__}: {error} ({TRACEBACK}=1 shows where)"


def complain(message: str) -> None:
    """Write a message as one line to standard error."""
    with contextlib.suppress(OSError):
        print(f"sframe-unwind: {printable(message)}", file=sys.stderr)


def complain_of(file: str, error: Exception) -> None:
    """Write an error as one line that names the file once."""
    message = str(error)
    complain(message if message.startswith(f"{file}: ") else f"{file}: {message}")
