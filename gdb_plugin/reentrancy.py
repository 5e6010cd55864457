"""Running GDB's own commands where the plugin has no other way to what they tell."""

from __future__ import annotations

import gdb


def may_execute() -> bool:
    """Return whether a GDB command can be run from within the unwinder.

    After a command that Python executes, GDB runs the commands of the breakpoint that it stopped at, if they are
    still to be run.  Between the stop and those commands, then, no command must be executed: theirs would run in
    the middle of the backtrace.
    """
    thread = gdb.selected_thread()
    return thread is None or thread.is_running() or not any(point.commands for point in gdb.breakpoints())
