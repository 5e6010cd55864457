"""Inside LLDB: each context's stack while it runs, by LLDB alone, and the later output of the plugin's commands."""

from __future__ import annotations

from typing import Any

import lldb

from tests.lldb.inside.program import Program


def collect(debugger: lldb.SBDebugger, program: dict[str, Any], commands: list[str], core: str) -> dict[str, Any]:
    """Return the stacks at each stop, and the output of the commands at the last stop and in its core file."""
    session = Program(debugger)
    session.run("sframe mode off")
    program["place"] += " -n trap"
    with session.started(program):
        stops = [_frames(session.thread)]
        for _ in range(1, program["hits"]):
            session.run("process continue")
            stops.append(_frames(session.thread))
        live = [_attempt(session, command) for command in [*commands, "sframe bt -ucontext make(0,0,0)"]]
        selected = session.thread.GetSelectedFrame().GetFunctionName()
        if core:
            session.run(f'process save-core --style full "{core}"')
    dead = []
    if core:
        session.run(f'target create "{program["executable"]}" --core "{core}"')
        dead = [_attempt(session, command) for command in commands]
    return {"stops": stops, "live": live, "dead": dead, "selected": selected}


def _attempt(session: Program, command: str) -> tuple[bool, str]:
    succeeded, output, error = session.attempt(command)
    return succeeded, output or error


def _frames(thread: lldb.SBThread) -> list[dict[str, Any]]:
    return [
        {"name": frame.GetFunctionName() or "??", "pc": frame.GetPC(), "sp": frame.GetSP()}
        for frame in thread
        if not frame.IsInlined() and not frame.IsArtificial()
    ]
