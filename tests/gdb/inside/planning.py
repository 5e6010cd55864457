"""Counts the plans that the plugin makes while stacks are read with several settings in turn."""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest.mock import patch

from gdb_plugin.frames.plans import Planner
from tests.gdb.inside.program import execute, run_to, stopped


def count(program: dict[str, Any]) -> dict[str, Any]:
    """Return how often each pc got a plan with each setting, and the output of commands, for each of two rounds.

    The second round repeats the commands at the same stop.
    """
    with patch.object(Planner, "plan", autospec=True, side_effect=Planner.plan) as made, stopped(program):
        execute("set sframe mode always")
        run_to(program["place"])
        rounds = []
        for _ in range(2):
            texts = [execute(command) for command in ("sframe compare", "bt", "sframe bt")]
            asked = (call.args for call in made.call_args_list)
            rounds.append({"made": Counter(f"{settings} {pc:#x}" for _, settings, pc in asked), "texts": texts})
            made.reset_mock()
        return {"first": rounds[0], "again": rounds[1]}
