"""Shows lines to the user where they do not break up the output of a command."""

from __future__ import annotations

import re

import gdb

from sframe_unwind.debugger.banner import is_read_by_a_person
from sframe_unwind.report.terminal import printable

_FOR_PROGRAMS = re.compile(rb"--?(i(nterpreter)?(=.*)?|batch(-silent)?)", re.DOTALL)
"""Arguments of a GDB whose output a program reads."""


def show(line: str) -> None:
    """Show one line at once."""
    gdb.write(f"sframe: {printable(line)}\n", gdb.STDERR)


class Reporter:
    """Shows lines; at a terminal, it waits for the end of the command, because most lines come up during a backtrace.

    GDB/MI and batch mode have no prompt, and GDB has no event for the end of a command, so a line is shown at once
    there.  In MI it is a record of its own; in batch mode the lines go to the standard error output.
    """

    def __init__(self) -> None:
        self.waits = is_read_by_a_person(_FOR_PROGRAMS)
        """A person reads the output, so there are prompts."""
        self._waiting: list[str] = []

    def __call__(self, line: str) -> None:
        """Show one line, now or before the next prompt."""
        if not self.waits:
            show(line)
            return
        if not self._waiting:
            self._connect(True)
        self._waiting.append(line)

    def _connect(self, wanted: bool) -> None:
        """Subscribe only while a line waits: GDB calls a handler at each prompt."""
        for registry in (gdb.events.before_prompt, gdb.events.gdb_exiting):
            (registry.connect if wanted else registry.disconnect)(self._show)

    def _show(self, event: object = None) -> None:
        self._connect(False)
        lines, self._waiting = self._waiting, []
        for line in lines:
            show(line)
