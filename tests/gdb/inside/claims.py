"""Lists the frames that the plugin's unwinder claims in a mode."""

from __future__ import annotations

from typing import Any

import gdb

from tests.gdb.inside.frames import chain
from tests.gdb.inside.program import execute, run_to, stopped, text_section

_MASK = (1 << 64) - 1


class _Spy:
    """Replaces the unwinder, and records its answers."""

    enabled = True

    def __init__(self, unwinder: Any) -> None:
        self.name = unwinder.name
        self.claimed: list[int] = []
        self._unwinder = unwinder

    def __call__(self, frame: gdb.PendingFrame) -> gdb.UnwindInfo | None:
        info = self._unwinder(frame)
        if info is not None:
            self.claimed.append(int(frame.read_register("pc")) & _MASK)
        return info


def collect(programs: list[dict[str, Any]], mode: str) -> list[dict[str, Any]]:
    """Return, for each program at its place, the pcs of all frames, and of those that SFrame unwound in strict mode."""
    answers = []
    for program in programs:
        with stopped(program):
            run_to(program["place"])
            execute(f"set sframe mode {mode}")
            execute("set sframe strict on")
            unwinders = gdb.frame_unwinders
            before = list(unwinders)
            spies = [_Spy(unwinder) if unwinder.name == "sframe" else unwinder for unwinder in before]
            unwinders[:] = spies
            gdb.invalidate_cached_frames()
            pcs = [frame.pc() for frame in chain()]
            unwinders[:] = before
            claimed = {pc for spy in spies if isinstance(spy, _Spy) for pc in spy.claimed}
            answers.append({"pcs": pcs, "claimed": sorted(claimed), "text": text_section()[0]})
    return answers
