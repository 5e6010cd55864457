"""Runs GDB commands and collects their output or error."""

from __future__ import annotations

from typing import Any

import gdb

from tests.gdb.inside.program import execute, run_to, stopped


def session(commands: list[str], program: dict[str, Any] | None = None) -> list[dict[str, str]]:
    """Run commands; if a program is given, at its place."""
    if program is None:
        return [_one(command) for command in commands]
    with stopped(program):
        run_to(program["place"])
        return [_one(command) for command in commands]


def _one(command: str) -> dict[str, str]:
    try:
        return {"command": command, "output": execute(command), "error": ""}
    except gdb.error as error:  # GdbError also arrives as this
        return {"command": command, "output": "", "error": str(error)}
