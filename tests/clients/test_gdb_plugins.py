"""Other GDB plugins together with this one.

GEF, gdb-dashboard and pwndbg are in no package index from which a test could install them; `inside` has plugins that
walk frames in the same way.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from lab.drive.building import built
from lab.drive.programs import named
from tests.clients.homes import gdb_environment
from tests.gdb.conftest import debugger as debugger
from tests.gdb.driver import Debugger
from tests.hanging import HANG
from tests.transcripts import Transcript

INSIDE = Path(__file__).resolve().parent / "inside"
PLUGINS = ("trace_at_stops", "panes_at_stops", "context_at_prompts")
SESSIONS = {
    "calls-O2": ("break twice", "next", "up", "info locals", "finish", "step", "continue", "stepi 3", "next"),
    "calls-O0": ("break last_call", "next", "step", "finish", "up", "next", "tbreak many", "continue", "return"),
    "objects-O2": ("catch throw", "up 2", "catch catch", "continue", "next", "step", "finish", "next 4"),
    "handoff-O1": ("break nested", "continue", "finish", "thread 1", "continue", "up 2", "finish"),
}
"""A program, the place where it stops, and the commands that are typed then."""
PROCESSOR = str(min(os.sched_getaffinity(0)))
"""The processor of all threads: they do not interrupt each other, so they are at the same places each time."""


def shown(debugger: Debugger, folder: Path, build: str, beside: str, plugin: bool) -> list[str]:
    """Return GDB's output in a session whose commands come as from a keyboard."""
    folder.mkdir()
    stop, *commands = SESSIONS[build]
    environment = gdb_environment(folder / "home", plugin, [f"source {INSIDE / beside}.py"])
    lines = [stop, "run > output.txt", *commands, "kill", "quit"]
    command = ["taskset", "-c", PROCESSOR, "chrt", "-b", "0", debugger.path, "-q", str(built(named(build)))]
    done = subprocess.run(
        command,
        input="".join(f"{line}\n" for line in lines).encode(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        cwd=folder,
        timeout=HANG,
        check=False,
    )
    Transcript(command).write(done.stdout)
    done.check_returncode()
    return masked(done.stdout.decode(errors="replace").splitlines())


def masked(lines: Sequence[str]) -> list[str]:
    """Return lines without the parts that vary: process ids, and the time when a thread is noticed.

    The line that the plugin prints when it is loaded is also removed.
    """
    kept = [line for line in lines if not re.search(r"\[(New )?(Thread|LWP)|\[Switching to|^sframe-unwind ", line)]
    return [re.sub(r"\b(LWP|process) \d+", r"\1 N", line) for line in kept]


@pytest.mark.parametrize("build", SESSIONS)
@pytest.mark.parametrize("beside", PLUGINS)
@pytest.mark.usefixtures("fixed_addresses")
def test_a_plugin_shows_what_it_shows_alone(beside: str, build: str, debugger: Debugger, tmp_path: Path) -> None:
    alone = shown(debugger, tmp_path / "without", build, beside, False)
    together = shown(debugger, tmp_path / "plugin_", build, beside, True)
    assert sum(line.startswith(("$rip", "*")) or "> 0 " in line for line in alone) >= 5
    assert not any("Traceback" in line or "Python Exception" in line for line in alone)
    assert together == alone
