"""Backtraces of stopped programs in both modes."""

from __future__ import annotations

import json
from typing import Any

from tests.gdb.inside.frames import frames
from tests.gdb.inside.program import execute, resume, run_to, stopped, text_section


def collect(programs: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return, for each program and each time that it reaches its place, the stacks in each mode."""
    answers = []
    for program in programs:
        with stopped(program):
            stops = []
            for hit in range(program["hits"]):
                if hit:
                    resume()
                else:
                    run_to(program["place"])
                stops.append(_both())
            answers.append(stops)
    return answers


def _both() -> dict[str, Any]:
    always = _shown("always")
    off = _shown("off", locations=True)
    execute("set sframe mode always")
    return {
        "always": always,
        "off": off,
        "again": execute("bt"),
        "compare": json.loads(execute("sframe compare -all --json")),
        "verdict": execute("sframe compare").splitlines()[-1],
        "ranges": dict(zip(("start", "end"), text_section())),
    }


def _shown(mode: str, locations: bool = False) -> dict[str, Any]:
    execute(f"set sframe mode {mode}")
    shown: dict[str, Any] = {"bt": execute("bt"), "threads": execute("thread apply all bt")}
    shown["frames"] = frames(locations)
    execute("frame 0")
    execute("set backtrace past-main on")
    execute("set backtrace past-entry on")
    shown["past main"] = execute("bt")
    execute("set backtrace past-main off")
    execute("set backtrace past-entry off")
    return shown
