"""Reads the callee-saved registers of all frames while a program is stepped, instruction by instruction."""

from __future__ import annotations

from typing import Any

import gdb

from tests.gdb.inside.frames import chain
from tests.gdb.inside.program import execute, run_to, stopped

Stop = list[dict[str, Any]]


def step(programs: list[dict[str, Any]], registers: list[str], functions: list[str]) -> list[list[Stop]]:
    """Return, for each program, the frames at its place and at each instruction until it leaves some functions.

    :return: for each frame its ``pc``, and the values of its ``registers``; ``None``: GDB does not know the value.
    """
    answers = []
    for program in programs:
        with stopped(program):
            run_to(program["place"])
            execute(f"set sframe mode {program['mode']}")
            stops = []
            while gdb.newest_frame().name() in functions:
                stops.append(_stop(registers))
                execute("stepi")
            answers.append(stops)
    return answers


def _stop(registers: list[str]) -> Stop:
    return [
        {"pc": frame.pc(), "registers": [_value(frame, name) for name in registers]}
        for frame in chain()
        if frame.type() == gdb.NORMAL_FRAME
    ]


def _value(frame: gdb.Frame, name: str) -> str | None:
    value = frame.read_register(name)
    return None if value.is_optimized_out else str(value.format_string(format="x"))
