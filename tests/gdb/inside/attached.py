"""The stacks of all threads of a process that is already running."""

from __future__ import annotations

import json
from typing import Any

import gdb

from tests.abis.inside.chains import MADE_UP, reachable, without_limits
from tests.gdb.inside.program import execute


def stacks(pid: int) -> dict[str, Any]:
    """Return the pcs of each thread's frames by its id, from `bt` in each mode, and the plugin's comparison."""
    execute(f"attach {pid}")
    without_limits()
    shown = {mode: _by_thread(mode) for mode in ("off", "always")}
    ids = {str(thread.num): thread.ptid[1] for thread in gdb.selected_inferior().threads()}
    compared = json.loads(execute("sframe compare -all --json"))["threads"]
    execute("detach")
    return {**shown, "sframe": {ids[thread["id"]]: thread["frames"] for thread in compared}}


def _by_thread(mode: str) -> dict[int, list[int]]:
    execute(f"set sframe mode {mode}")
    found = {}
    for thread in gdb.selected_inferior().threads():
        thread.switch()
        found[thread.ptid[1]] = [frame.pc() for frame in reachable() if frame.type() not in MADE_UP]
    return found
