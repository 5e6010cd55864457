"""Decides whether a plugin prints a line when it is loaded."""

from __future__ import annotations

import functools
import os
import re


def is_read_by_a_person(for_programs: re.Pattern[bytes]) -> bool:
    """Return whether a person, not a program, reads the debugger's output.

    IDEs speak GDB/MI or DAP to a debugger, some of them at a terminal, and scripts run it in batch mode.

    :param for_programs: matches an argument of a debugger whose output a program reads.
    """
    return os.isatty(0) and not has_argument(for_programs)


def has_argument(wanted: re.Pattern[bytes]) -> bool:
    """Return whether an argument of this debugger matches a pattern as a whole, or the arguments are unknown."""
    arguments = _arguments()
    return arguments is None or any(map(wanted.fullmatch, arguments))


@functools.cache
def _arguments() -> list[bytes] | None:
    try:
        with open("/proc/self/cmdline", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return None
