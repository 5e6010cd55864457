"""Programs without SFrame: the plugin waits for a module that has some, and changes nothing of LLDB's meanwhile."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.gdb.compiling import tools_for
from tests.hanging import HANG
from tests.lldb.driver import IMPORT, batch

PROGRAM = """
#include <stdlib.h>
static int order(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static __attribute__((noinline)) int sort(int n)
{
    int v[9] = {3, 1, 2, n};
    qsort(v, 9, sizeof *v, order);
    return v[n];
}
int main(int argc, char **argv) { return sort(argc); }
"""
OTHER = """
import lldb
LISTENERS = {}
KINDS = (lldb.SBTarget, 6), (lldb.SBThread, 8), (lldb.SBProcess, 32)
def __lldb_init_module(debugger, internal_dict):
    for kind, bits in KINDS:
        name = kind.GetBroadcasterClassName()
        LISTENERS[name] = lldb.SBListener(name)
        print("granted", name, LISTENERS[name].StartListeningForEventClass(debugger, name, bits))
    debugger.HandleCommand("command script add -o -f other.count count")
def count(debugger, command, result, internal_dict):
    for name, listener in LISTENERS.items():
        event, seen = lldb.SBEvent(), 0
        while listener.GetNextEvent(event):
            seen += 1
        print("heard", name, seen)
"""
LATE = """
import time, lldb
LISTENER = lldb.SBListener("late")
def __lldb_init_module(debugger, internal_dict):
    LISTENER.StartListeningForEvents(debugger.GetBroadcaster(), lldb.SBDebugger.eBroadcastBitProgress)
    debugger.HandleCommand("command script add -o -f late.listen listen")
    debugger.HandleCommand("command script add -o -f late.read read")
def listen(debugger, command, result, internal_dict):
    LISTENER.StartListeningForEvents(debugger.GetSelectedTarget().GetBroadcaster(), 6)
def read(debugger, command, result, internal_dict):
    time.sleep(1)
    event = lldb.SBEvent()
    while LISTENER.GetNextEvent(event):
        count = lldb.SBTarget.GetNumModulesFromEvent(event)
        if lldb.SBTarget.EventIsTargetEvent(event):
            print("late", "modules" if count else "nothing")
        else:
            print("late", "progress" if lldb.SBDebugger.GetProgressFromEvent(event)[0] else "nothing")
"""
STATE = """
import json, sys, lldb
ours = [
    name for name, module in sys.modules.items()
    if name.split(".")[0] in ("lldb_plugin", "sframe_unwind") and not hasattr(module, "__path__")
]
lines = sum(1 for name in ours for line in open(sys.modules[name].__file__))
found = [sorted(ours), lines, lldb.SBDebugger.FindDebuggerWithID(2).IsValid(), sorted(sys.modules)]
print("state", json.dumps(found))
"""
NOT_AT_A_STOP = (
    *("debugger.contexts", "elf.relocation", "elf.section_addresses", "elf.symbols", "kernel.linux", "kernel.types"),
    *("orc.table", "report.compare", "runtime_code.head", "sframe.displaced", "sframe.plain_rows"),
    "unwind.run_time_match",
)
"""Modules of the core that no stop in a usual program needs."""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Build a program without SFrame, one with SFrame beside CFI, and a stripped one with SFrame alone."""
    folder = tmp_path_factory.mktemp("asleep")
    made = {name: folder / name for name in ("without", "beside", "alone")}
    (folder / "source.c").write_text(PROGRAM, encoding="utf-8")
    tools = f"-B{tools_for(3)}/"
    text = folder / "alone.s"
    _run("gcc", "-O1", "-S", folder / "source.c", "-o", text)
    text.write_text(f".cfi_sections .sframe\n{text.read_text(encoding='utf-8')}", encoding="utf-8")
    _run("gcc", "-g", "-O1", folder / "source.c", "-o", made["without"])
    _run("gcc", "-g", "-O1", tools, "-Wa,--gsframe", folder / "source.c", "-o", made["beside"])
    _run("gcc", "-O1", tools, "-Wa,--gsframe", text, "-s", "-o", made["alone"])
    return made


def _run(*command: object) -> None:
    subprocess.run(list(map(str, command)), check=True, timeout=HANG)


def shown(lldb: str, program: Path, *commands: str, plugin: bool = True, first: str = "version") -> str:
    """Return what LLDB prints.

    :param first: the command before the program is opened, after the plugin is imported.
    """
    load = ("-O", IMPORT) if plugin else ()
    return batch(lldb, *load, "-O", first, *(part for command in commands for part in ("-o", command)), str(program))


START = ("breakpoint set -n qsort", "process launch -o /dev/null")


@pytest.mark.parametrize("name", ["without", "alone"])
def test_other_scripts_hear_all_events(lldb: str, name: str, programs: dict[str, Path], tmp_path: Path) -> None:
    """LLDB gives each kind of event of a debugger to one listener, the first that asks."""
    (tmp_path / "other.py").write_text(OTHER, encoding="utf-8")
    first = f'command script import "{tmp_path}/other.py"'
    commands = (*START, "frame select 0", "count")
    alone, beside = (
        [
            line
            for line in shown(lldb, programs[name], *commands, plugin=plugin, first=first).splitlines()
            if line.startswith(("granted", "heard"))
        ]
        for plugin in (False, True)
    )
    assert len(alone) == 6
    assert "heard lldb.target 0" not in alone
    assert beside == alone


@pytest.mark.parametrize("name", ["without", "alone"])
def test_events_that_others_read_later_are_whole(
    lldb: str, name: str, programs: dict[str, Path], tmp_path: Path
) -> None:
    """All listeners get the same object of an event: who clears it clears it for all."""
    (tmp_path / "late.py").write_text(LATE, encoding="utf-8")
    first = f'command script import "{tmp_path}/late.py"'
    said = [
        re.findall(
            r"^late (\w+)$", shown(lldb, programs[name], "listen", *START, "read", plugin=plugin, first=first), re.M
        )
        for plugin in (False, True)
    ]
    for kinds in said:
        assert kinds.count("modules") >= 4
        assert kinds.count("progress") >= 4
        assert "nothing" not in kinds


def test_nothing_is_loaded_or_made_for_a_program_without_sframe(lldb: str, programs: dict[str, Path]) -> None:
    commands = (*START, "bt", "target stop-hook list", "target frame-provider list", f"script exec({STATE!r})")
    said = shown(lldb, programs["without"], *commands)
    loaded, lines, has_second_debugger, modules = _state(said)
    assert len(loaded) <= 17, loaded
    assert lines <= 1200
    assert not has_second_debugger
    without = _state(shown(lldb, programs["without"], *commands, plugin=False))[-1]
    others = [name for name in modules if name not in without and not name.startswith(("lldb_plugin", "sframe_"))]
    assert "threading" in modules  # some LLDBs have it without the plugin
    assert "pathlib" not in others
    assert len(others) <= 12, others
    assert "No stop hooks" in said
    assert "no frame providers registered" in said


def test_little_is_loaded_where_sframe_changes_no_stack(lldb: str, programs: dict[str, Path]) -> None:
    """Neither what answers LLDB's questions for frames, nor what reads kernels, nor what commands need."""
    awake = _state(shown(lldb, programs["beside"], *START, f"script exec({STATE!r})"))
    changing = _state(shown(lldb, programs["alone"], *START, f"script exec({STATE!r})"))
    assert "lldb_plugin.lifecycle.new_modules" in awake[0]
    assert "lldb_plugin.lifecycle.decision" not in awake[0]
    assert "sframe_unwind.unwind.code_match" not in awake[0]
    assert "lldb_plugin.lifecycle.decision" in changing[0]
    for loaded, *_ in (awake, changing):
        assert [name for name in NOT_AT_A_STOP if f"sframe_unwind.{name}" in loaded] == []


def _state(said: str) -> Any:
    """Return what :data:`STATE` has printed."""
    return json.loads(said.partition("\nstate ")[2].splitlines()[0])


def test_wakes_for_a_module_with_sframe(lldb: str, programs: dict[str, Path]) -> None:
    said = shown(lldb, programs["alone"], *START, "bt")
    assert "[synthetic]" in said.rpartition("(lldb) bt")[2]
    assert said.count("stop reason = ") == 2  # the stop, and the backtrace


def test_a_launch_does_not_wait_for_the_thread_that_learns_of_files(lldb: str, programs: dict[str, Path]) -> None:
    """That thread can be late; here it never looks.  A script then asks for frames without a command."""
    never = "script from lldb_plugin.plugin import the_plugin; the_plugin().watcher.look = lambda: None"
    count = "script print('synthetic', sum(frame.IsSynthetic() for frame in lldb.thread))"
    said = shown(lldb, programs["alone"], *START, count, "target frame-provider list", first=never)
    assert int(said.partition("\nsynthetic ")[2].splitlines()[0]) > 0
    assert said.count("sframe_lldb.SFrameFrameProvider") == 1


@pytest.mark.parametrize("name", ["without", "beside"])
@pytest.mark.usefixtures("fixed_addresses")
def test_a_session_reads_as_without_the_plugin(lldb: str, name: str, programs: dict[str, Path]) -> None:
    commands = (*START, "bt", "thread step-out", "frame variable", "target stop-hook list", "register read pc")
    alone, beside = (
        shown(lldb, programs[name], *commands, plugin=plugin).partition("(lldb) target create")[2].splitlines()
        for plugin in (False, True)
    )
    # The event thread prints these at varying places, and process IDs differ.
    varying = ("Process ", "1 location added to breakpoint ")
    assert [line for line in beside if not line.startswith(varying)] == [
        line for line in alone if not line.startswith(varying)
    ]


def test_a_warning_of_lldb_is_shown_once(lldb: str, programs: dict[str, Path], tmp_path: Path) -> None:
    """The plugin's own debugger, which it has where SFrame changes stacks, shows nothing."""
    source = programs["alone"].with_name("alone.s")
    _run("gcc", f"-B{tools_for(3)}/", "-Wa,--gsframe", source, "-o", tmp_path / "program")
    (tmp_path / "split.c").write_text("int f(int n) { return n; }", encoding="utf-8")
    _run("gcc", "-g", "-gsplit-dwarf", "-c", tmp_path / "split.c", "-o", tmp_path / "split.o")
    linked = tmp_path / "linked"
    _run("gcc", f"-B{tools_for(3)}/", "-Wa,--gsframe", source, tmp_path / "split.o", "-o", linked)
    for left in tmp_path.glob("*.dwo"):
        left.unlink()
    commands = (*START, "sframe strict on", "bt", "breakpoint set -n f", "frame variable")
    counts = [
        shown(lldb, linked, *commands[: None if plugin else 2], *commands[3:], plugin=plugin).count(
            "unable to locate separate debug file"
        )
        for plugin in (False, True)
    ]
    assert counts[0] >= 1
    assert counts[1] == counts[0]


def test_a_machine_without_an_abi_of_sframe(lldb: str, tmp_path: Path) -> None:
    text = ".globl _start\n.text\nf: nop\n ret\n_start: call f\n mov $1,%eax\n xor %ebx,%ebx\n int $0x80\n"
    (tmp_path / "a.s").write_text(text, encoding="utf-8")
    _run("as", "--32", "-o", tmp_path / "a.o", tmp_path / "a.s")
    _run("ld", "-m", "elf_i386", "-o", tmp_path / "a", tmp_path / "a.o")
    said = shown(lldb, tmp_path / "a", "b f", "run", "target frame-provider list", "sframe status")
    before, _, status = said.partition("(lldb) sframe status")
    assert "sframe: " not in before
    assert "no frame providers registered" in before
    assert "SFrame has no ABI for i386" in status


def test_thread_return_into_a_frame_without_registers_is_refused(lldb: str, programs: dict[str, Path]) -> None:
    """LLDB would end with SIGSEGV; where the caller is LLDB's own, the command works."""
    # LLDB takes RBP for a frame pointer; with this value, it has no caller of its own.
    refused = shown(lldb, programs["alone"], *START, "register write rbp 1", "thread return", "bt 1")
    assert "error: sframe: frame #1 is SFrame's" in refused
    assert "qsort" in refused.rpartition("(lldb) bt 1")[2]
    returned = shown(lldb, programs["beside"], *START, "sframe strict off", "thread return", "bt 1")
    assert "sort" in returned.rpartition("(lldb) bt 1")[2]
    assert "`qsort" not in returned.rpartition("(lldb) bt 1")[2]
