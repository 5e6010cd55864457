"""Prevents ``frame view`` from ending GDB 13.

The command makes a frame at an address that the user gives.  GDB 13 cannot find this frame by its identity, and fails
an assertion as soon as an unwinder in Python reads a register of it, or of a frame further out
(``value_fetch_lazy_register: Assertion `next_frame != NULL'``).  An unwinder cannot distinguish such a frame from
others, and GDB makes it anew whenever it forgets its frames, until another frame is selected.
"""

from __future__ import annotations

import gdb

from gdb_plugin.frames.unwinder import SFrameUnwinder

_NAME = "maintenance rest-sframe"
_PREFIXES = ("frame", "select-frame", "info frame")
"""The commands that have a subcommand ``view``."""


class Rest(gdb.Command):
    """Leave all frames to GDB until the process runs.

    Run by GDB 13 before each 'frame view'.
    """

    def __init__(self, unwinder: SFrameUnwinder) -> None:
        self._unwinder = unwinder
        super().__init__(_NAME, gdb.COMMAND_MAINTENANCE)
        for prefix in _PREFIXES:
            try:
                gdb.execute(f"show user {prefix} hook-view", to_string=True)
            except gdb.error:  # the user has defined none
                gdb.execute(f"define {prefix} hook-view\n{_NAME}\nend", to_string=True)

    def invoke(self, argument: str, from_tty: bool) -> None:
        """Run the command."""
        if self._unwinder.rest():
            gdb.write(
                "sframe: all frames are GDB's own until the process runs: GDB 13 fails where an unwinder in Python"
                " reads registers of a frame that 'view' makes\n",
                gdb.STDERR,
            )
