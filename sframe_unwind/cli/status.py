"""Exit statuses and error lines, the same for all commands."""

from __future__ import annotations

import contextlib
import sys

from sframe_unwind.report.terminal import printable

DONE = 0
NOT_ALL = 1
"""An answer, but not the good one: an address that is not covered, a disagreement."""
CANNOT = 2
INTERRUPTED = 130
"""As a shell has it for SIGINT."""
PIPE_CLOSED = 141
"""As a shell has it for SIGPIPE: whoever read the output has seen enough."""


def complain(message: str) -> None:
    """Write one line to standard error."""
    with contextlib.suppress(OSError):
        print(f"sframe-unwind: {printable(message)}", file=sys.stderr)


def complain_of(file: str, error: Exception) -> None:
    """Write one line that names the file once, whether or not the error does."""
    message = str(error)
    complain(message if message.startswith(f"{file}: ") else f"{file}: {message}")
