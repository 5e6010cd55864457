"""The files from which a debugger takes the debug information of a module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable, NamedTuple


class DebugFile(NamedTuple):
    """A file that the debugger has read for a module: the module's own, or its separate debug file."""

    path: str
    build_id: str
    """In hexadecimal digits; empty: the debugger knows none."""


FindDebugFiles = Callable[[Callable[[], str]], Sequence[DebugFile]]
"""``(function that reads the module's build ID)``: returns the files, in the order in which their CFI takes
precedence."""
