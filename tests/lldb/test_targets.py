"""Several targets and debuggers in one LLDB, and a target with a program that is started again."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from sframe_unwind.elf import opened
from tests.code.assembled import assemble
from tests.expectations import STOPS, STRIPPED_DEPTH
from tests.hanging import HANG
from tests.lldb.debuggers import PLUGIN, PROVIDING, find
from tests.lldb.driver import IMPORT, agrees, batch, call, stacks
from tests.lldb.programs import program
from tests.samples.build import build

BY_NAME = {stop.name: stop for stop in STOPS}


@pytest.mark.parametrize("lldb", PROVIDING)
def test_several_targets_and_debuggers(lldb: str) -> None:
    programs = [program(BY_NAME["leaf"]), program(BY_NAME["recursion"])]
    said = call(find(lldb), "targets", "several", programs=programs, plugin_file=str(PLUGIN))
    calls_outer = ["`outer(" in backtrace for backtrace, _ in said]
    assert calls_outer == [True, False, True, True, True]
    assert "`descend(" in said[1][0]
    assert all(agrees(verdict) for _, verdict in said)


@pytest.mark.parametrize("lldb", PROVIDING)
def test_launched_again_and_rebuilt(lldb: str, tmp_path: Path) -> None:
    described = program(BY_NAME["leaf"])
    copy = tmp_path / "leaf"
    shutil.copy(described["executable"], copy)
    other = build("leaf", variant="fp")
    answer = call(find(lldb), "targets", "again", program={**described, "executable": str(copy)}, other=str(other))
    first, second, third = answer
    assert first == second
    assert first[:4] == third[:4] == ["sample_stop", "inner", "outer", "main"]
    assert all(agrees(verdict) for *_, verdict in answer)


@pytest.mark.parametrize("lldb", PROVIDING)
@pytest.mark.usefixtures("fixed_addresses")
def test_launched_again_and_stopped_before_its_libraries_are_loaded(lldb: str) -> None:
    """LLDB knows the libraries from the previous run, and broadcasts no event when they are loaded."""
    end = ("-o", "breakpoint disable", "-o", "continue", "-o", "breakpoint enable")
    start = ("-o", "breakpoint set -n sample_stop", "-o", "process launch -o /dev/null", "-o", "bt", *end)
    again = ("-o", "process launch -s -o /dev/null", "-o", "bt", "-o", "continue", "-o", "bt", "-o", "sframe status")
    said = batch(find(lldb), "-O", IMPORT, *start, *again, str(build("sframe_only_stripped")))
    first, early, second = stacks(said)
    assert len(early) < STRIPPED_DEPTH <= len(first)
    assert second == first
    assert "libc.so.6" in said.rpartition("without SFrame: ")[2]


@pytest.mark.parametrize("lldb", PROVIDING)
def test_quitting_while_the_program_starts(lldb: str) -> None:
    """LLDB asks for the frames of a process whose target it is dropping, which has no architecture any more."""
    start = ("-o", "breakpoint set -n sample_stop", "-o", "script lldb.debugger.SetAsync(True)")
    for _ in range(3):
        launch = ("-o", "process launch -o /dev/null", "-o", "quit")
        said = batch(find(lldb), "-O", IMPORT, *start, *launch, str(build("sframe_only_stripped")))
        assert "launched" in said
        assert "sframe: " not in said


_LEAVING = """
import threading
watching = lambda: [thread for thread in threading.enumerate() if thread.name == "sframe-unwind"]
for _ in range(2):
    other = lldb.SBDebugger.Create(False)
    other.SetAsync(False)
    for line in ('command script import "{plugin}"', 'target create "{program}"', "breakpoint set -n sample_stop"):
        other.HandleCommand(line)
    while_there = watching()
    other.HandleCommand("process launch -o /dev/null")
    print("frames:", other.GetSelectedTarget().GetProcess().GetSelectedThread().GetNumFrames(), flush=True)
    lldb.SBDebugger.Destroy(other)
    print("threads:", len(while_there), "then", len(watching()), flush=True)
"""


@pytest.mark.parametrize("lldb", PROVIDING)
def test_the_thread_that_looks_at_targets_ends_with_the_last_debugger(lldb: str, tmp_path: Path) -> None:
    """Otherwise it may ask LLDB while that ends; a debugger that comes later has a thread again."""
    script = tmp_path / "leaving.py"
    places = {"plugin": PLUGIN, "program": build("sframe_only_stripped")}
    script.write_text(_LEAVING.format(**places), encoding="utf-8")
    said = batch(find(lldb), "-o", f"script exec(open({str(script)!r}).read())", "-o", "quit")
    assert said.count("threads: 1 then 0") == 2, said
    counts = [int(line.partition(" ")[2]) for line in said.splitlines() if line.startswith("frames: ")]
    assert len(counts) == 2
    assert min(counts) >= STRIPPED_DEPTH, said


_LATE_HANDLING = """
import threading, time
from lldb_plugin.lifecycle.new_modules import NewModules
from lldb_plugin.lifecycle.watching import Watcher
mine, other = lldb.debugger, lldb.SBDebugger.Create(False)
other.HandleCommand('command script import "{plugin}"')
number_of_other = other.GetID()
handle, handled = Watcher._look_at, threading.Event()
def late(watcher, target):
    handled.set()
    while number_of_other in watcher._debuggers:
        time.sleep(0.01)
    {question}
    return handle(watcher, target)
prepare = NewModules.prepare
def prepared(self, target, is_new):
    print("prepared", flush=True)
    return prepare(self, target, is_new)
def left(number):
    Watcher._look_at, NewModules.prepare = late, prepared
    other.CreateTarget("{program}")
    print("handled late:", handled.wait({seconds}), flush=True)
mine.AddDestroyCallback(left)
"""


@pytest.mark.parametrize("lldb", PROVIDING)
@pytest.mark.parametrize("question", ["", "lldb.SBDebugger.FindDebuggerWithID(1)"])
def test_quitting_while_a_target_of_another_debugger_is_looked_at(question: str, lldb: str, tmp_path: Path) -> None:
    """LLDB destroys the debuggers that are left with the lock of its list; whoever asks for a debugger waits for it.

    Nothing is prepared for their targets: the plugin would make its own debugger while LLDB ends, and LLDB could crash.
    """
    script = tmp_path / "late.py"
    places = {"plugin": PLUGIN, "program": build("sframe_only_stripped"), "seconds": HANG}
    script.write_text(_LATE_HANDLING.format(question=question, **places), encoding="utf-8")
    said = batch(find(lldb), "-o", IMPORT, "-o", f"script exec(open({str(script)!r}).read())", "-o", "quit")
    assert "handled late: True" in said
    assert "prepared" not in said


_PLACE = """
from_program = lambda name: lldb.target.module[0].FindSection(name).GetLoadAddress(lldb.target)
places = [".text.part", hex(from_program(".text")), ".sframe", hex(from_program(".sframe"))]
lldb.debugger.HandleCommand("target modules load --file part.o " + " ".join(places))
"""


@pytest.mark.parametrize("lldb", PROVIDING)
def test_an_unlinked_file_whose_first_section_is_not_loaded(lldb: str, tmp_path: Path) -> None:
    """A kernel module is such a file: its sections are loaded one by one."""
    loaded = build("leaf")
    with opened(loaded) as binary:
        size = binary.size_of(".sframe")
    source = f'.section .text.part,"ax"\n.space 64\n.section .sframe,"a"\n.space {size}\n'
    part = assemble("amd64", source, tmp_path / "part.o")
    start = ("-o", "breakpoint set -n sample_stop", "-o", "process launch -o /dev/null", "-o", "sframe status")
    add = ("-o", f"target modules add {part}", "-o", "sframe status")
    said = batch(
        find(lldb), "-O", IMPORT, *start, *add, "-o", f"script exec({_PLACE!r})", "-o", "sframe status", str(loaded)
    )
    _, first, added, placed = said.split("(lldb) sframe status")
    assert "part.o  " not in first + added
    assert re.search(r"^part\.o +0x[0-9a-f]+ +\d +amd64 ", placed, re.MULTILINE), placed
