"""The stacks of all threads of a process that is already running."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import lldb

from tests.lldb.inside.program import Program


def stacks(debugger: lldb.SBDebugger, pid: int) -> dict[str, Any]:
    """Return the pcs of each thread's frames by its id, from `bt` in each mode, and the plugin's comparison."""
    inside = Program(debugger)
    inside.run(f"process attach -p {pid}")
    process = inside.target.GetProcess()
    try:
        shown = {}
        for mode in ("off", "always"):
            inside.run(f"sframe mode {mode}")
            shown[mode] = {thread.GetThreadID(): list(_pcs(thread)) for thread in process}
        compared = json.loads(inside.run("sframe compare -all --json"))["threads"]
        ids = {str(thread.GetIndexID()): thread.GetThreadID() for thread in process}
    finally:
        process.Detach()
    return {**shown, "sframe": {ids[thread["id"]]: thread["frames"] for thread in compared}}


def _pcs(thread: lldb.SBThread) -> Iterator[int]:
    """Yield the pcs of physical frames: of a function and those inlined there, the innermost has the pc."""
    inlined = False
    for frame in thread:
        if not inlined and not frame.IsArtificial():  # made up for a tail call
            yield frame.GetPC()
        inlined = frame.IsInlined()
