"""The files from which a debugger takes the debug information of a module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable

from sframe_unwind.named_tuple import NamedTuple

_CHECKSUM = 8
"""Number of hexadecimal digits of a checksum, which LLDB has in place of a missing build ID; a build ID has more."""


class DebugFile(NamedTuple):
    """A file that the debugger has read for a module: the module's own, or its separate debug file."""

    path: str
    build_id: str
    """In hexadecimal digits, or LLDB's checksum of a file that has none; empty: the debugger knows none."""

    def has_build_id(self) -> bool:
        """Return whether the file has a build ID, as far as the debugger knows."""
        return len(self.build_id) > _CHECKSUM


FindDebugFiles = Callable[[Callable[[], str]], Sequence[DebugFile]]
"""``(function that reads the module's build ID)``: returns the files, in the order in which their CFI takes
precedence."""
