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
INTERNAL_ERROR = 70
"""A bug of this package ended the command, or cost it the result for a file (``EX_SOFTWARE`` of ``sysexits.h``)."""
OUT_OF_MEMORY = "not enough memory"
INTERRUPTED = 130
"""The status that a shell gives a program that SIGINT ended."""
PIPE_CLOSED = 141
"""The status that a shell gives a program that SIGPIPE ended: the reader of the output closed the pipe."""


def complain(message: str) -> None:
    """Write a message as one line to standard error."""
    with contextlib.suppress(OSError):
        print(f"sframe-unwind: {printable(message)}", file=sys.stderr)


def complain_of(file: str, error: Exception) -> None:
    """Write an error as one line that names the file once."""
    message = str(error)
    complain(message if message.startswith(f"{file}: ") else f"{file}: {message}")
