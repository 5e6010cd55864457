"""Compares everything that GDB shows of a stack with and without the plugin's frames, in one session."""

from __future__ import annotations

from difflib import unified_diff
from typing import Any

import gdb

from tests.gdb.inside.frames import chain
from tests.gdb.inside.program import execute, run_to, stopped


def compare(programs: list[dict[str, Any]], moves: list[str], mode: str = "always") -> list[dict[str, Any]]:
    """Return, for each program, at its place and after each move, the differences between a mode and mode ``off``.

    :return: for each program its ``differences``, the number of ``values`` of variables that mode ``off`` shows, and
        the ``unwinders`` of its frames at the last stop when SFrame unwinds all that it can.
    """
    answers = []
    for program in programs:
        with stopped(program):
            differences: list[str] = []
            values = 0
            run_to(program["place"])
            for move in ["", *moves]:
                if move:
                    execute(move)
                execute("set sframe mode off")
                off = _state()
                values += sum(" = " in line and "<optimized out>" not in line for line in off)
                execute(f"set sframe mode {mode}")
                differences += unified_diff(off, _state(), "off", mode, lineterm="", n=0)
            shown = execute("sframe bt").splitlines()
            unwinders = [line.split()[-1] for line in shown if line.startswith("#")]
            answers.append({"differences": differences, "values": values, "unwinders": unwinders})
    return answers


def _state() -> list[str]:
    """Return the stack with all variables, and the registers of each frame."""
    lines = execute("bt -full").splitlines()
    for frame in chain():
        frame.select()
        lines += execute("info registers").splitlines()
    gdb.newest_frame().select()
    return lines
