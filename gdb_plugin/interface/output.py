"""Runs GDB's own commands for data that GDB provides in no other way."""

from __future__ import annotations

import gdb

from gdb_plugin.interface.mi_records import console_text
from gdb_plugin.interface.texts import path_text


def may_execute() -> bool:
    """Return whether a GDB command can be run from within the unwinder.

    A breakpoint can have commands of the user's, which GDB runs after the stop.  If Python executes a GDB command
    before that, GDB runs the breakpoint's commands right after it: in the middle of the backtrace.  So the result is
    false while a thread is stopped and any breakpoint has commands.
    """
    thread = gdb.selected_thread()
    return thread is None or thread.is_running() or not any(point.commands for point in gdb.breakpoints())


def output_of(command: str) -> str:
    """Return the output of a GDB command.

    :raises gdb.error: it fails.
    """
    # Where GDB/MI is spoken, GDB 18 returns the records that it would have sent; GDB 13 returns the text.
    return console_text(path_text(lambda: gdb.execute(command, to_string=True)))
