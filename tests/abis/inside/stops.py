"""Shows the stacks in several modes at the stops of a program."""

from __future__ import annotations

import json
from typing import Any

import gdb

from tests.abis.inside.chains import MADE_UP, in_mode, reachable, register, without_limits
from tests.gdb.inside.program import execute, resume, run_to, stopped, text_section


def collect(programs: list[dict[str, Any]], sysroot: str) -> list[dict[str, Any]]:
    """For each program, return the frames in each mode at its place, or under "error" why they are unknown."""
    if sysroot:
        execute(f"set sysroot {sysroot}")
    execute("set backtrace limit 100")  # without unwind data, GDB sometimes guesses without end
    return [_program(program) for program in programs]


def _program(program: dict[str, Any]) -> dict[str, Any]:
    execute(f"set solib-search-path {program['libraries']}")
    try:
        with stopped(program):
            run_to(program["place"])
            for _ in range(1, program["hits"]):
                resume()
            return _in_each_mode()
    except (gdb.error, OSError) as error:
        return {"error": f"{type(error).__name__}: {error}"}


def _in_each_mode() -> dict[str, Any]:
    thread = gdb.selected_thread()
    shown: dict[str, Any] = {}
    for mode in ("off", "fallback", "always"):
        execute("set backtrace past-main off")
        execute("set backtrace past-entry off")
        execute(f"set sframe mode {mode}")
        if mode != "always":
            _backtrace()  # GDB 13 shows a Python exception, once, if its own unwinder fails at the innermost frame
        shown[mode] = {"bt": _backtrace(), "frames": [{"name": frame.name() or "??"} for frame in reachable()]}
        shown[mode]["threads"] = execute("thread apply all -q bt") if len(thread.inferior.threads()) > 1 else ""
        without_limits()
        shown[mode]["chain"] = in_mode(mode)
    execute("set backtrace past-main off")
    execute("set backtrace past-entry off")
    shown["compare"] = json.loads(execute("sframe compare -all --json"))
    shown["verdict"] = execute("sframe compare").splitlines()[-1]
    shown["status"] = execute("sframe status")
    execute("set sframe mode always")
    shown["masks"] = [register(frame, "pauth_cmask") for frame in reachable() if frame.type() not in MADE_UP]
    shown["text"] = dict(zip(("start", "end"), text_section()))
    return shown


def _backtrace() -> str:
    """Return the output of `bt`, including its error message."""
    try:
        return execute("bt")
    except gdb.error as error:
        return f"error: {error}"
