"""Reports a bug of this package: by one line, and by the traceback if an environment variable requests it."""

from __future__ import annotations

import os
import sys

TRACEBACK = "SFRAME_UNWIND_TRACEBACK"
"""Environment variable that requests the traceback of an internal error."""
PREFIX = "internal error: "
"""Begins the line of each internal error."""


def describe(error: Exception) -> str:
    """Return the line for an exception that is not an error of the input."""
    return f"{PREFIX}{type(error).__name__}: {error} ({TRACEBACK}=1 shows where)"


def show_traceback(error: Exception) -> None:
    """Write the traceback of an exception to standard error, if the environment requests it."""
    if os.environ.get(TRACEBACK) and sys.stderr is not None:
        import traceback  # with the modules that it imports, it takes a tenth of the time of most commands

        print("".join(traceback.format_exception(type(error), error, error.__traceback__)), end="", file=sys.stderr)
