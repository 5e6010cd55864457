"""Frames of deep stacks whose pc the plugin knows before GDB asks for them: it must be the one that GDB finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.gdb.compiling import compiled
from tests.gdb.driver import Debugger, call

LEVELS = 300
KINDS = {"plain": 0.6, "inlined": 0.3, "signal": 0.6, "library": 0.0}
"""Kinds of stacks, and the share of the frames that must be known.  A library without SFrame ends each walk."""
MOVES = ("finish", "stepi", "up 150", "finish", "stepi")


def known(debugger: Debugger, executable: Path, kind: str, moves: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Return what was known in advance where a stack of some kind is deepest, and after each of some commands."""
    program = {"executable": str(executable), "arguments": [kind, str(LEVELS)], "emulator": [], "place": "stop"}
    stops: list[dict[str, Any]] = call(
        debugger, "outer_frames.compare", program={**program, "signals": ["SIGUSR1"]}, moves=moves
    )
    return stops


@pytest.mark.parametrize("frame_pointer", ["-fomit-frame-pointer", "-fno-omit-frame-pointer"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_known_is_right(debugger: Debugger, kind: str, frame_pointer: str, tmp_path: Path) -> None:
    (stop,) = known(debugger, compiled("deep.c", tmp_path, frame_pointer), kind)
    assert stop["frames"] > LEVELS
    assert stop["wrong"] == {}
    assert stop["same"]
    assert stop["known"] >= KINDS[kind] * stop["frames"]
    assert bool(stop["known"]) == bool(KINDS[kind])


def test_after_the_program_has_moved(debugger: Debugger, tmp_path: Path) -> None:
    stops = known(debugger, compiled("deep.c", tmp_path), "plain", MOVES)
    assert len(stops) == len(MOVES) + 1
    assert len({stop["frames"] for stop in stops}) > 2
    for stop in stops:
        assert stop["wrong"] == {}
        assert stop["same"]
        assert stop["known"] >= (stop["frames"] > LEVELS / 2) * stop["frames"] / 3
