"""Loads programs with unusable SFrame data; collects GDB's backtraces and the plugin's messages."""

from __future__ import annotations

from typing import Any

from tests.gdb.inside.program import execute, run_to, stopped


def collect(programs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each program, return GDB's backtrace, those in mode `always`, and the text of `explain` and `status`."""
    answers = []
    for program in programs:
        execute("set sframe mode off")  # GDB shows a frame when it connects
        with stopped(program):
            run_to(program["place"])
            native = execute("bt")
            execute("set sframe mode always")
            answers.append(
                {
                    "native": native,
                    "always": [execute("bt"), execute("bt")],
                    "further": execute("stepi") + execute("bt") + execute("up"),
                    "explain": execute("sframe explain"),
                    "status": execute("sframe status"),
                }
            )
    return answers
