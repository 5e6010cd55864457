"""Shows lines to the user where they do not break up the output of a command."""

from __future__ import annotations

import re

import gdb

from sframe_unwind.debugger.banner import has_argument, is_read_by_a_person
from sframe_unwind.report.terminal import printable

_RECORDS = re.compile(rb"--?i(nterpreter)?(=.*)?", re.DOTALL)
"""Arguments of a GDB whose output is records."""
_FOR_PROGRAMS = re.compile(rb"--?(i(nterpreter)?(=.*)?|batch(-silent)?)", re.DOTALL)
"""Arguments of a GDB whose output a program reads."""


def show(line: str) -> None:
    """Show one line at once."""
    gdb.write(f"{_line(line)}\n", gdb.STDERR)


def _line(line: str) -> str:
    return f"sframe: {printable(line)}"


class Reporter:
    """Shows lines before the next prompt, because most of them come up while GDB is writing a line of its own.

    In batch mode, which has no prompt, lines are shown at the end of GDB.  In GDB/MI and DAP, a line is a record of its
    own, and is shown at once.
    """

    def __init__(self) -> None:
        self._waits = not has_argument(_RECORDS)
        self._waiting: list[tuple[str, int]] = []

    def __call__(self, line: str) -> None:
        """Show one line, now or before the next prompt."""
        self._add(_line(line), gdb.STDERR)

    def greet(self, line: str) -> None:
        """Show a line if a person reads the output."""
        if is_read_by_a_person(_FOR_PROGRAMS):
            self._add(line, gdb.STDOUT)

    def _add(self, line: str, stream: int) -> None:
        if not self._waiting:
            self._connect(True)
        self._waiting.append((line, stream))
        if not self._waits:
            self._show()

    def _connect(self, wanted: bool) -> None:
        """Subscribe to the event before a prompt only while a line waits: GDB calls the handler at each prompt."""
        for registry in (gdb.events.before_prompt, gdb.events.gdb_exiting):
            (registry.connect if wanted else registry.disconnect)(self._show)

    def _show(self, event: object = None) -> None:
        self._connect(False)
        lines, self._waiting = self._waiting, []
        for line, stream in lines:
            gdb.write(f"{line}\n", stream)
