"""Compares the pcs of frames that the plugin knew in advance with those that GDB finds."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import gdb

from gdb_plugin.frames.outer_frames import OuterFrames
from tests.gdb.inside.frames import chain
from tests.gdb.inside.program import execute, run_to, stopped

_known_pc = OuterFrames.known_pc


def compare(program: dict[str, Any], moves: list[str]) -> list[dict[str, Any]]:
    """Return, for the place of a program and after each command that moves it, what was known and what is right."""
    with stopped(program):
        run_to(program["place"])
        stops = [_stop()]
        for command in moves:
            execute(command)
            stops.append(_stop())
        return stops


def _stop() -> dict[str, Any]:
    known: dict[int, int] = {}

    def recorded(frames: OuterFrames, level: int) -> int | None:
        pc = _known_pc(frames, level)
        if pc is not None:
            known[level] = pc
        return pc

    gdb.invalidate_cached_frames()
    with patch.object(OuterFrames, "known_pc", recorded):
        shown = execute("bt")
    execute("set sframe mode off")
    pcs = {frame.level(): frame.pc() for frame in chain()}
    own = execute("bt")
    execute("set sframe mode always")
    wrong = {level: pc for level, pc in known.items() if pcs.get(level) != pc}
    return {"frames": len(pcs), "known": len(known), "wrong": wrong, "same": shown == own}
