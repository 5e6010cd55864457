"""Follows the back chain of s390x: the word at SP is the caller's SP, and r14 is saved 112 bytes above that.

This is defined in the s390x ELF ABI supplement.
"""

from __future__ import annotations

import json
from typing import Any

import gdb

from tests.abis.inside.chains import in_mode, register
from tests.gdb.inside.frames import word
from tests.gdb.inside.program import execute, run_to, stopped

RETURN_ADDRESS = 112


def collect(programs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each program, stopped in a leaf function, return pc and SP of the frames by SFrame and by the back chain."""
    answers = []
    for program in programs:
        with stopped(program):
            run_to(program["place"])
            shown = in_mode("always")
            thread = json.loads(execute("sframe compare --json"))["threads"][0]
            answers.append(
                {
                    "functions": [frame["name"] for frame in shown],
                    "unwinders": [frame["unwinder"] for frame in thread["frames"]],
                    "by sframe": [[frame["pc"], frame["sp"]] for frame in shown],
                    "by back chain": _frames(),
                }
            )
    return answers


def _frames() -> list[list[int]]:
    frame = gdb.newest_frame()
    sp = register(frame, "r15") or 0
    # The leaf function has no frame of its own: its return address is still in the register where the call left it.
    frames = [[frame.pc(), sp], [register(frame, "r14") or 0, sp]]
    while sp := word(sp, ">"):
        back = word(sp + RETURN_ADDRESS, ">")
        if not back:
            break
        frames.append([back, sp])
    return frames
