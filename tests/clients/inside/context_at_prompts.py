"""Walks frames like pwndbg's context: before each prompt, from the innermost frame outward, and marks new values.

Modelled on pwndbg's `context_backtrace`, `prompt`, `finish`-like breakpoints and the events that it listens to.
"""

from __future__ import annotations

import gdb

_cache: dict[str, int] = {}


def say(line: str) -> None:
    gdb.write(line + "\n")


def context() -> None:
    """Print the selected frame's registers and variables, and the innermost eight frames with GDB's text for each."""
    if gdb.selected_thread() is None:
        return
    frame = gdb.selected_frame()
    newest = frame
    while newest.newer():
        newest = newest.newer()
    for name in ("rip", "rsp", "rbx", "rbp", "r12", "r13", "r14", "r15"):
        value = int(frame.read_register(name).cast(gdb.lookup_type("unsigned long")))
        say(f"{name} {value:#x}{'' if _cache.get(name) == value else ' *'}")
        _cache[name] = value
    level = 0
    each: gdb.Frame | None = newest
    while each and level < 8:
        pc = each.pc()
        symbol = gdb.execute(f"info symbol {pc:#x}", to_string=True).strip()
        say(f"{'>' if each == frame else ' '} {level} {pc:#x} {symbol}")
        say(gdb.execute(f"info frame level {each.level()}", to_string=True).strip())
        each, level = each.older(), level + 1
    say(gdb.execute("info args", to_string=True).strip())
    say(gdb.execute("info locals", to_string=True).strip())


class Returned(gdb.FinishBreakpoint):  # type: ignore[misc]  # GDB has no types
    """Prints the result of a function, and continues."""

    def stop(self) -> bool:
        """Never stop."""
        say(f"returned {self.return_value}")
        return False


def on_stop(event: gdb.StopEvent) -> None:
    """Wait for the function's end, as for `malloc` and similar functions."""
    try:
        Returned(gdb.newest_frame(), internal=True)
    except (gdb.error, ValueError) as error:
        say(f"no breakpoint at the end: {error}")


def at_prompt() -> None:
    """Show the context before each prompt."""
    try:
        context()
    except gdb.error as error:
        say(f"context: {error}")


gdb.events.stop.connect(on_stop)
gdb.events.before_prompt.connect(at_prompt)
