"""The physical frames of the selected thread in either mode, as GDB's Python interface gives them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gdb

from tests.gdb.inside.frames import KINDS, chain
from tests.gdb.inside.program import execute

MADE_UP = (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME)
"""Frames without their own registers."""

FP = {"i386:x86-64": "rbp", "aarch64": "x29", "s390:64-bit": "r11"}
SP = {"i386:x86-64": "rsp", "aarch64": "sp", "s390:64-bit": "r15"}


def in_mode(mode: str) -> list[dict[str, Any]]:
    """Return the frames from the innermost outward: function, pc, SP and FP register, kind."""
    execute(f"set sframe mode {mode}")
    return frames()


def frames() -> list[dict[str, Any]]:
    """Return the same in the mode that is set.  The CFA of a frame follows from the SP of the next one."""
    architecture = gdb.selected_inferior().architecture().name()
    sp, fp = SP[architecture], FP[architecture]
    return [
        {
            "name": frame.name() or "??",
            "pc": frame.pc(),
            "sp": register(frame, sp),
            "fp": register(frame, fp),
            "kind": KINDS.get(frame.type(), "other"),
        }
        for frame in reachable()
        if frame.type() not in MADE_UP
    ]


def reachable() -> Iterator[gdb.Frame]:
    """Yield the frames that GDB reaches.  GDB 13 raises an error at one that it cannot unwind, or without a pc."""
    try:
        for frame in chain():
            frame.pc()
            yield frame
    except gdb.error:
        return


def register(frame: gdb.Frame, name: str) -> int | None:
    """Return a register of a frame; `None`: it is unknown, or the target does not have it."""
    try:
        return int(frame.read_register(name)) & (1 << 64) - 1
    except (gdb.error, ValueError):
        return None


def without_limits() -> None:
    """Let GDB continue beyond main and the program's entry."""
    execute("set backtrace past-main on")
    execute("set backtrace past-entry on")
