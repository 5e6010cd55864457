"""Decides whether a plugin prints a line when it is loaded."""

from __future__ import annotations

import os
import re
from pathlib import Path


def is_read_by_a_person(for_programs: re.Pattern[bytes]) -> bool:
    """Return whether a person, not a program, reads the debugger's output.

    IDEs speak GDB/MI or DAP to a debugger, some of them at a terminal, and scripts run it in batch mode.

    :param for_programs: matches an argument of a debugger whose output a program reads.
    """
    try:
        arguments = Path("/proc/self/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return os.isatty(0) and not any(map(for_programs.fullmatch, arguments))
