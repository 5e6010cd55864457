"""GDB/MI, which most IDEs and Emacs use."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pygdbmi import gdbmiparser

from lab.drive.building import built
from lab.drive.programs import named
from tests.clients.homes import gdb_environment
from tests.clients.process import Process
from tests.gdb.conftest import debugger as debugger
from tests.gdb.driver import Debugger

PROMPT = b"(gdb) \n"
FRAMES = (
    "-stack-info-depth",
    "-stack-list-frames",
    "-stack-list-arguments --all-values",
    "-stack-list-variables --thread 1 --frame 0 --all-values",
    "-stack-list-variables --thread 1 --frame 1 --all-values",
    "-stack-list-variables --thread 1 --frame 2 --all-values",
    "-data-list-register-values --thread 1 --frame 1 x 3 6 7 12 13 14 15 16",
    "-stack-info-frame",
    "-thread-info",
)
SESSIONS = {
    "calls-O2": (
        *("-break-insert by_weight", "-exec-run", *FRAMES, "-break-delete 1", "-break-insert -t many"),
        *("-exec-continue", "-exec-next", "-exec-step", *FRAMES, "-exec-finish", *FRAMES, "-exec-next"),
        *("-break-insert growing", "-exec-run", *FRAMES, "-exec-next", "-exec-next", "-exec-step"),
        *(*FRAMES, "-stack-select-frame 1", "-var-create size * size", "-exec-finish"),
        *("-var-update --all-values *", "-exec-step-instruction 5", "-exec-next", "-exec-return"),
        *(*FRAMES, "-exec-next"),
    ),
    "calls-O0": (
        *("-break-insert twice", "-exec-run", *FRAMES, "-exec-step", *FRAMES, "-exec-next", "-exec-finish", *FRAMES),
        *("-exec-finish", "-exec-next", "-var-create i * i", "-exec-next", "-exec-next", "-exec-next"),
        *("-var-update --all-values i", *FRAMES),
    ),
    "objects-O2": (
        *("-catch-throw", "-exec-run", *FRAMES, "-catch-catch", "-exec-continue", *FRAMES, "-exec-finish"),
        *("-exec-next", "-exec-step", *FRAMES, '-data-evaluate-expression "guarded(2)"', "-exec-next", *FRAMES),
    ),
}
"""Commands for programs of `lab.drive`."""


def spoken(debugger: Debugger, folder: Path, plugin: bool, build: str, commands: Sequence[str]) -> list[str]:
    """Return all output of GDB in a session, one record in each line; a command precedes its answer."""
    folder.mkdir()
    environment = gdb_environment(folder / "home", plugin)
    with Process([debugger.path, "-q", "--interpreter=mi3"], environment, folder) as gdb:
        lines = _until_prompt(gdb)
        started = [f'-file-exec-and-symbols "{built(named(build))}"', "-exec-arguments > output.txt"]
        for command in (*started, *commands):
            gdb.send(f"{command}\n".encode())
            answer = _until_prompt(gdb)
            while _kinds(answer) >= {"running"} and "stopped" not in _kinds(answer):
                answer += _until_prompt(gdb)
            lines += [f"{command}:", *answer]
        assert gdb.errors() == ""
    return [_masked(line) for line in lines]


def _until_prompt(gdb: Process) -> list[str]:
    def take(unread: bytes) -> tuple[bytes, bytes] | None:
        before, mark, rest = unread.partition(PROMPT)
        return (before, rest) if mark else None

    return gdb.read(take).decode().splitlines()


def _records(lines: Sequence[str]) -> list[dict[str, Any]]:
    return [gdbmiparser.parse_response(line) for line in lines]


def _kinds(lines: Sequence[str]) -> set[str]:
    """Return the messages of the records about the results of commands and the place of the program."""
    return {record["message"] for record in _records(lines) if record["type"] in ("result", "notify")}


def _masked(line: str) -> str:
    """Return a record without the parts that vary."""
    line = re.sub(r'(pid|core)="\d+"', r'\1="N"', line)
    return re.sub(r"(process|LWP) \d+", r"\1 N", line)


@pytest.mark.parametrize("build", SESSIONS)
@pytest.mark.usefixtures("fixed_addresses")
def test_all_records_are_what_they_are_without_the_plugin(build: str, debugger: Debugger, tmp_path: Path) -> None:
    without = spoken(debugger, tmp_path / "without", False, build, SESSIONS[build])
    with_it = spoken(debugger, tmp_path / "plugin_", True, build, SESSIONS[build])
    assert sum("^error" in line for line in without) < 12
    assert sum("*stopped" in line for line in without) >= 7
    assert with_it == without


def test_the_commands_work(debugger: Debugger, tmp_path: Path) -> None:
    """A client's console shows the same text as GDB itself."""
    commands = ["-break-insert by_weight", "-exec-run"]
    console = ["sframe status", "sframe bt", "sframe compare", "sframe explain", "show sframe mode"]
    asked = [f'-interpreter-exec console "{command}"' for command in console]
    lines = spoken(debugger, tmp_path / "mi", True, "calls-O2", [*commands, *asked])
    shown = {}
    for command in asked:
        start = lines.index(f"{command}:")
        end = next(index for index, line in enumerate(lines) if index > start and line.startswith("^"))
        assert lines[end] == "^done"
        said = _records(lines[start + 1 : end])
        assert {record["type"] for record in said} == {"console"}
        shown[command] = "".join(record["payload"] for record in said)
    status, backtrace, compare, explain, mode = shown.values()
    assert "calls" in status
    assert "no module" not in status
    assert backtrace.count(" sframe") >= 2
    assert "by_weight" in backtrace
    assert "sframe" in compare.lower()
    assert "by_weight" in explain
    assert "auto" in mode
