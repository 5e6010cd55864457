"""Collects the backtraces and the output of the commands at each stop of a program."""

from __future__ import annotations

from typing import Any

import gdb

from tests.gdb.inside.program import execute, resume, stopped


def stops(program: dict[str, Any], commands: list[str]) -> list[list[str]]:
    """Return what commands print at each stop of a program at its place."""
    shown = []
    with stopped(program):
        execute(f"break {program['place']}")
        resume()
        while gdb.selected_inferior().pid:
            shown.append([execute(command) for command in commands])
            execute("continue")
    return shown
