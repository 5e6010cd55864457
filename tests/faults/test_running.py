"""Long stacks, running threads and processes, and names that are not valid text."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.expectations import AGREEMENT
from tests.faults.sessions import DEBUGGERS, show
from tests.hanging import HANG
from tests.samples.build import COMMON_FLAGS, build, toolchain

DEEP = 100_000
LESS_DEEP = 30_000
"""Depth for GDB 18, which takes four times as long for twice the frames, also without the plugin."""
ESCAPE = "\x1b[2J"


@pytest.mark.parametrize("debugger", DEBUGGERS)
def test_item_27_a_stack_of_100000_frames(debugger: str) -> None:
    """The stack is shown from its outermost frame, which requires all of it."""
    depth = LESS_DEEP if debugger == "GDB 18" else DEEP
    outer = "bt -1" if debugger.startswith("GDB") else f"thread backtrace --start {DEEP} --count {DEEP}"
    *_, shown, ours = show(debugger, build("recursion"), str(depth), outer, "sframe bt 3")
    number = re.search(r"#(\d+):? .*\bmain\b", shown)
    assert number is not None, shown[-500:]
    assert int(number[1]) > depth
    assert ours.endswith("end: only the innermost 3 frames were asked for")


@pytest.mark.parametrize("debugger", [name for name in DEBUGGERS if name.startswith("GDB")])
def test_a_thread_that_runs_on(debugger: str, program: Path) -> None:
    """The other threads are stopped meanwhile; LLDB stops all threads or none."""
    tried = ("thread apply all -s bt 3", "sframe compare -all", "thread 2", "sframe bt", "bt", "thread 1")
    shown = show(debugger, program, "spin", *tried, "sframe compare", first=("set non-stop on",))
    every, compared, _, running, native, _, again = shown[1:]
    assert "sample_stop" in every
    assert "sample_stop" in compared
    assert "running" in compared
    assert "running" in native
    assert running == "sframe: Selected thread is running."
    assert re.search(rf"^{AGREEMENT}$", again, re.MULTILINE), again


@pytest.mark.parametrize("debugger", [name for name in DEBUGGERS if name.startswith("LLDB")])
def test_a_process_that_runs(debugger: str, program: Path) -> None:
    """Commands are refused with one line while it runs, and work again when it has stopped."""
    running = ("script lldb.debugger.SetAsync(True)", "continue", "sframe bt", "sframe compare", "sframe explain")
    state = "lldb.debugger.GetSelectedTarget().GetProcess().GetState()"
    wait = f"from tests.waiting import wait_until; wait_until(lambda: {state} == lldb.eStateStopped, 'it stands still')"
    stopped = ("process interrupt", f"script {wait}", "sframe compare -all")
    *_, ours, compared, explained, _, _, again = show(debugger, program, "on", *running, *stopped)
    refused = "no stopped process: it is running, 'process interrupt' stops it"
    for shown in (ours, compared, explained):
        # The process may have been resumed, and not run yet.
        assert shown in (f"error: sframe: {refused}", "error: sframe: no thread is selected"), shown
    assert re.search(rf"^{AGREEMENT}$|^first difference", again, re.MULTILINE), again


@pytest.mark.parametrize("debugger", DEBUGGERS)
def test_a_process_that_is_killed(debugger: str, program: Path) -> None:
    """Another process kills it between two commands."""
    kill = (
        "import os, signal; from tests.waiting import runs, wait_until; process = {};"
        " os.kill(process, signal.SIGKILL); wait_until(lambda: not runs(process), 'it is gone')"
    )
    inside = "python " + kill.format("gdb.selected_inferior().pid")
    if debugger.startswith("LLDB"):
        inside = "script " + kill.format("lldb.debugger.GetSelectedTarget().GetProcess().GetProcessID()")
    tried = ("sframe bt", "bt", "sframe compare", "sframe explain", "sframe status", "mode off", "bt")
    shown = show(debugger, program, "stop", "sframe bt", inside, *tried)
    assert "  main (" in shown[1]
    for said in shown[3:7]:
        assert len([line for line in said.splitlines() if line.startswith(("sframe: ", "error: "))]) <= 1, said


@pytest.mark.parametrize("debugger", DEBUGGERS)
def test_control_characters_in_names(debugger: str, tmp_path: Path) -> None:
    """A function's name clears the screen; the plugin's output does not."""
    tried = ("sframe bt", "sframe compare", "up", "sframe explain", "sframe status")
    _, ours, compared, _, explained, status = show(debugger, named_to_clear_the_screen(tmp_path), "", *tried)
    for shown in (ours, compared, explained):
        assert r"\x1b[2J" in shown, shown
        assert ESCAPE not in shown
    assert ESCAPE not in status


def named_to_clear_the_screen(folder: Path) -> Path:
    """Build a program without debug information, in which the name of one function is not valid text."""
    source, plain, named = folder / "named.c", folder / "plain.o", folder / "named.o"
    source.write_text(
        f'#include "{Path(__file__).parents[1] / "samples" / "sample.h"}"\n'
        "KEEP int evil(int value) { sample_stop(value); OPAQUE(value); return value; }\n"
        "int main(void) { int value = evil(1); OPAQUE(value); return value; }\n",
        encoding="utf-8",
    )
    tools = f"-B{toolchain('amd64', 3)}/"
    flags = [flag for flag in COMMON_FLAGS if flag != "-g"]
    program = folder / "named"
    for command in (
        ["gcc", *flags, "-O2", tools, "-c", source, "-o", plain],
        ["objcopy", "--redefine-sym", f"evil={ESCAPE}evil", plain, named],
        ["gcc", tools, named, "-o", program],
    ):
        subprocess.run([str(part) for part in command], check=True, timeout=HANG)
    return program
