"""Runs GDB's own commands for data that GDB provides in no other way."""

from __future__ import annotations

import re

import gdb

from gdb_plugin.texts import path_text

_RECORD = re.compile(r'^~"((?:[^"\\]|\\.)*)"$', re.MULTILINE)
"""A record of the console stream of GDB/MI."""
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")
_CONTROL = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"f": b"\f", b"b": b"\b", b"a": b"\a", b"e": b"\33"}


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
    output = path_text(lambda: gdb.execute(command, to_string=True))
    if not output.startswith('~"'):
        return output
    # Where GDB/MI is spoken, GDB 18 returns the records that it would have sent; GDB 13 returns the text.
    return "".join(_unescaped(record) for record in _RECORD.findall(output))


def _unescaped(record: str) -> str:
    def character(escape: re.Match[bytes]) -> bytes:
        code = escape[1]
        return bytes([int(code, 8)]) if len(code) == 3 else _CONTROL.get(code, code)

    return _ESCAPE.sub(character, record.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")
