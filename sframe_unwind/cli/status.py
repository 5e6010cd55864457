"""Exit statuses and error messages of all commands."""

from __future__ import annotations

import contextlib
import sys

from sframe_unwind.report.terminal import printable

DONE = 0
NOT_ALL = 1
"""The command succeeded with a negative result, such as an address without SFrame data or a disagreement."""
CANNOT = 2
"""The command failed."""
INTERNAL_ERROR = 70
"""A bug of this package ended the command, or left a file without a result (``EX_SOFTWARE`` of ``sysexits.h``)."""
OUT_OF_MEMORY = "not enough memory"
"""Message of a command that ends with :data:`CANNOT` because an allocation failed."""
INTERRUPTED = 130
"""The status that a shell gives a program that SIGINT ended."""
PIPE_CLOSED = 141
"""The status that a shell gives a program that SIGPIPE ended: the reader of the output closed the pipe."""

STATUSES = {
    DONE: "success",
    NOT_ALL: "a negative result: an address without SFrame, a disagreement, a finding, something left out",
    CANNOT: "the command failed, or a part of what was asked for; one line on standard error says why",
    INTERNAL_ERROR: "a bug of this program",
    INTERRUPTED: "interrupted (SIGINT)",
    PIPE_CLOSED: "the reader of the output closed the pipe (SIGPIPE)",
}
"""The meaning of each exit status, in words."""


def complain(message: str) -> None:
    """Write a message as one line to standard error."""
    with contextlib.suppress(OSError):
        print(f"sframe-unwind: {printable(message)}", file=sys.stderr)


def complain_of(file: str, error: Exception) -> None:
    """Write an error as one line that names the file once."""
    message = str(error)
    complain(message if message.startswith(f"{file}: ") else f"{file}: {message}")
