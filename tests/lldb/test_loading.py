"""Loading the plugin: from different folders, at different times, repeatedly, and its messages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sframe_unwind import elf
from tests.expectations import STRIPPED_DEPTH
from tests.hanging import HANG
from tests.lldb.debuggers import CHECKOUT, PLUGIN, find, find_without_provider
from tests.lldb.driver import IMPORT, batch, check, environment, stacks
from tests.lldb.hearing import telling
from tests.lldb.terminal import terminal, typed
from tests.missing import toolchain_needed
from tests.samples.build import build, toolchain
from tests.waiting import wait_until_idle

STACK = ("sample_stop", "innermost", "with_alloca", "descend")
"""The innermost functions of ``sframe_only``, whose stack SFrame changes: it gets the provider."""
START = ("-o", "breakpoint set -n sample_stop", "-o", "process launch -o /dev/null")

WAITING = Path(__file__).parents[2] / "lab" / "drive" / "sources" / "waiting.c"


def assert_plugged(said: str) -> None:
    """Check that there is exactly one provider, and that the backtrace is right."""
    assert said.count("sframe_lldb.SFrameFrameProvider") == 1, said
    backtrace = said.rpartition("(lldb) bt")[2]
    for number, name in enumerate(STACK):
        assert any(f"frame #{number}: " in line and f"`{name}" in line for line in backtrace.splitlines()), said


SHOW = ("-o", "target frame-provider list", "-o", "bt")

KEEPS_NONE = "script import sys, time; [time.sleep(0.01) for _ in range(6_000) if not sys.dont_write_bytecode]"
"""Waits until LLDB's Python keeps no compiled modules: the plugin's thread may be loading some at any time."""


@pytest.mark.parametrize("wanted", [True, False])
def test_compiled_modules_are_kept_if_the_user_wants_that(lldb: str, wanted: bool, tmp_path: Path) -> None:
    """LLDB turns it off for all modules, whatever the user wants."""
    for package in ("lldb_plugin", "sframe_unwind"):
        shutil.copytree(CHECKOUT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    load = f'command script import "{tmp_path}/lldb_plugin/sframe_lldb.py"'
    keeps = 'script print("keeps", not sys.dont_write_bytecode)'
    commands = ("-o", "sframe status", "-o", KEEPS_NONE, "-o", keeps)
    program, refused = str(build("sframe_only")), "" if wanted else "1"
    said = batch(lldb, "-O", load, *START, *commands, program, PYTHONDONTWRITEBYTECODE=refused)
    assert "\nkeeps False\n" in said
    kept = {path.name.partition(".")[0] for path in tmp_path.rglob("*.pyc")}
    assert {"entry", "engine", "commands", "section"} <= kept if wanted else not kept


def test_before_and_after_the_target_and_twice(lldb: str) -> None:
    program = str(build("sframe_only"))
    for loads in (("-O", IMPORT), ("-o", IMPORT), ("-O", IMPORT, "-o", IMPORT), ("-o", IMPORT, "-o", IMPORT)):
        said = batch(lldb, *loads, *START, *SHOW, program)
        assert_plugged(said)
        assert "sframe-unwind " not in said  # in batch mode a program reads the output
        assert said.count("stop reason = breakpoint") == 2  # the stop, and in the backtrace


def test_from_the_settings_file(lldb: str, tmp_path: Path) -> None:
    (tmp_path / ".lldbinit").write_text(IMPORT + "\n")
    assert_plugged(batch(lldb, *START, *SHOW, str(build("sframe_only")), init=True, HOME=str(tmp_path)))
    with terminal(lldb, init=True, HOME=str(tmp_path)) as session:
        for _ in range(2):
            session.run(f'target create "{typed(build("sframe_only"))}"')
            session.run("breakpoint set -n sample_stop")
            session.launch()
            shown = session.run("bt")
            assert all(f"`{name}" in shown for name in STACK), shown
            assert "sframe_lldb" in session.run("target frame-provider list")


def test_a_program_that_is_started_at_once_is_shown_once(lldb: str) -> None:
    """LLDB shows the existing threads when a provider is registered; in a third of such sessions there were some."""
    shown = [batch(lldb, "-O", IMPORT, *START, str(build("leaf"))).count("stop reason = ") for _ in range(8)]
    assert shown == [1] * 8


LIST = "target frame-provider list"
HOOKS = "target stop-hook list"
NONE_REGISTERED = "no frame providers registered"
STRICT = "sframe strict on"
"""With it, SFrame changes the stack of any program that has SFrame."""


def test_on_a_stopped_process_with_threads(lldb: str) -> None:
    said = batch(lldb, *START, "-o", IMPORT, "-o", LIST, "-o", STRICT, *SHOW, "-o", "bt all", str(build("threads")))
    assert NONE_REGISTERED in said.partition(f"(lldb) {STRICT}")[0]
    assert said.count("sframe_lldb.SFrameFrameProvider") == 1
    assert said.rpartition("(lldb) bt all")[2].count("`wait_at(") == 2 + 3 + 4


def test_not_registered_in_mode_off(lldb: str) -> None:
    modes = ["-O", IMPORT, "-O", "sframe mode off", "-O", STRICT]
    for mode in ("always", "off"):
        modes += ["-o", LIST, "-o", f"sframe mode {mode}", "-o", LIST]
    program = str(build("sframe_only"))
    said = batch(lldb, *modes, *START, "-o", LIST, "-o", "bt", "-o", "sframe mode always", *SHOW, program)
    listed = [part.partition("(lldb)")[0] for part in said.split(f"(lldb) {LIST}\n")[1:]]
    assert ["sframe_lldb" in part for part in listed[:5]] == [False, True, True, False, False]
    assert_plugged(said.rpartition("(lldb) sframe mode always")[2])


def test_taken_back_at_once_with_nothing_shown_twice(lldb: str) -> None:
    with terminal(lldb, "-O", IMPORT, str(build("sframe_only_stripped"))) as session:
        session.run("breakpoint set -n sample_stop")
        session.launch()
        session.run("frame select 2")
        assert "frame #0" not in session.run("sframe mode off")
        assert "sframe_lldb" not in session.run(LIST)
        assert "State: enabled" not in session.run(HOOKS)
        assert len(stacks(session.run("bt"))[0]) < STRIPPED_DEPTH
        assert "frame #0" not in session.run("sframe mode always")
        assert "sframe_lldb" in session.run(LIST)
        assert len(stacks(session.run("bt"))[0]) >= STRIPPED_DEPTH
        session.run("frame select 2")
        session.run("sframe mode fallback")
        assert "frame #2" in session.run("frame select")
        session.resume("thread step-inst")
        assert len(stacks(session.run("bt"))[0]) >= STRIPPED_DEPTH


def test_unusable_sframe_is_told_once(lldb: str, tmp_path: Path) -> None:
    """LLDB has CFI there, so nothing asks for the SFrame of an address."""
    damaged = tmp_path / "leaf"
    shutil.copy(build("leaf"), damaged)
    with elf.opened(damaged) as binary:
        (section,) = (section for section in binary.sections if section.name == ".sframe")
    with damaged.open("r+b") as file:
        file.seek(section.offset + 4)
        file.write(b"\xff")
    said = batch(lldb, "-O", IMPORT, *START, "-o", "bt", "-o", "thread step-inst", "-o", "bt", "-o", LIST, str(damaged))
    assert said.count(f"sframe: {damaged}: SFrame data not used: unknown ABI 255, expected 1 to 4") == 1
    assert NONE_REGISTERED in said
    assert "`main" in said


OTHER = """
import lldb
import time

def __lldb_init_module(debugger, internal_dict):
    other = lldb.SBDebugger.Create(False)
    other.SetAsync(False)
    other.HandleCommand({load!r})
    other.HandleCommand("sframe mode off")
    target = other.CreateTarget({program!r})
    target.BreakpointCreateByName("sample_stop")
    process = target.LaunchSimple(None, None, ".")
    native = process.GetSelectedThread().GetNumFrames()
    naps = []
    class Clock:
        monotonic = time.monotonic
        def sleep(seconds):
            naps.append(seconds)
            time.sleep(seconds)
    from lldb_plugin.lifecycle import event_thread
    event_thread.time = Clock
    other.HandleCommand("sframe mode always")
    print("result:", native, process.GetSelectedThread().GetNumFrames(), sum(naps))
    process.Kill()
"""


def test_a_debugger_of_a_script_is_not_waited_for(lldb: str, tmp_path: Path) -> None:
    """No event thread belongs to it; the plugin waited four seconds for that of the first debugger.

    The naps of the plugin are counted, so the sum does not depend on the load of the machine.
    """
    program = str(build("sframe_only_stripped"))
    (tmp_path / "other.py").write_text(OTHER.format(load=IMPORT, program=program), encoding="utf-8")
    said = batch(lldb, "-o", f'command script import "{tmp_path}/other.py"')
    native, complete, waited = said.partition("result: ")[2].split()[:3]
    assert int(native) < STRIPPED_DEPTH <= int(complete)
    assert float(waited) < 2


SETTLING = """
import gc, lldb, threading
ended = []
class Broadcaster(lldb.SBBroadcaster):
    def __del__(self):
        ended.append(self.GetName())
lldb.SBBroadcaster = Broadcaster
from lldb_plugin.lifecycle.event_thread import EventThreads
waiting = EventThreads(set())
settling = [lambda: [waiting.settle(lldb.debugger) for _ in range(20)] for _ in range(3)]
threads = [threading.Thread(target=settle) for settle in settling]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
gc.collect()
print("left:", lldb.debugger.GetListener().PeekAtNextEvent(lldb.SBEvent()), "ended:", ended)
"""


def test_the_sender_of_an_event_stays_while_the_event_thread_may_use_it(lldb: str, tmp_path: Path) -> None:
    """LLDB crashed if the event thread was interrupted when it had taken the event from the queue."""
    (tmp_path / "settling.py").write_text(SETTLING, encoding="utf-8")
    said = batch(lldb, "-O", IMPORT, "-o", f"script exec(open({str(tmp_path / 'settling.py')!r}).read())")
    assert "left: False ended: []" in said


def test_removed_where_a_setting_is_not_needed_any_more(lldb: str) -> None:
    changes = [part for setting in ("on", "off") for part in ("-o", f"sframe strict {setting}", "-o", LIST)]
    said = batch(lldb, "-O", IMPORT, *START, "-o", LIST, *changes, str(build("leaf")))
    listed = [part.partition("(lldb)")[0] for part in said.split(f"(lldb) {LIST}\n")[1:]]
    assert ["sframe_lldb" in part for part in listed] == [False, True, False]
    assert said.count("stop reason = ") == 1


def test_no_stop_hook_in_mode_off(lldb: str) -> None:
    """Hooks of targets, of later ones too, are disabled with the mode; a hook of the user's is left alone."""
    mine = "target stop-hook add -o 'script print(\"mine\")'"
    commands = [f'target create "{build("leaf")}"', HOOKS, mine, "sframe mode always", HOOKS]
    commands += ["sframe mode off", HOOKS, f'target create "{build("recursion")}"', HOOKS]
    before = ("-O", IMPORT, "-O", "sframe mode off")
    said = batch(lldb, *before, *(part for command in commands for part in ("-o", command)))
    listed = [part.partition("(lldb)")[0] for part in said.split(f"(lldb) {HOOKS}\n")[1:]]
    states = [re.findall(r"State: (\w+)", part) for part in listed]
    assert states == [[], ["enabled"], ["enabled"], []]  # that of the user


@pytest.mark.parametrize("sample", ["leaf", "sframe_only"])
def test_core_file(lldb: str, sample: str, tmp_path: Path) -> None:
    program, core = str(build(sample)), str(tmp_path / "core")
    batch(lldb, *START, "-o", f"process save-core -s full {core}", program)
    for load in ("-O", "-o"):
        modes = ("-o", "sframe mode off", "-o", "sframe compare", "-o", "sframe mode always")
        said = batch(lldb, load, IMPORT, *modes, *SHOW, program, "-c", core)
        if sample == "leaf":
            assert " frames agree" in said
        else:
            assert_plugged(said)


def test_attached_without_a_target(lldb: str, tmp_path: Path) -> None:
    """Where SFrame changes no stack, the stop is shown once, as without the plugin; a setting that does registers."""
    waiting = tmp_path / "waiting"
    with toolchain_needed():
        flags = ("-O1", "-Wa,--gsframe", f"-B{toolchain('amd64', 3)}/")
    subprocess.run(["gcc", *flags, WAITING, "-o", waiting], check=True, timeout=HANG)
    process = subprocess.Popen([waiting], stdout=subprocess.DEVNULL)
    wait_until_idle(process.pid)
    try:
        commands = ("-o", LIST, "-o", STRICT, *SHOW)
        said = batch(lldb, "-O", IMPORT, "-o", f"process attach -p {process.pid}", *commands)
        attached, _, changed = said.partition(f"(lldb) {STRICT}")
        assert NONE_REGISTERED in attached
        assert attached.count("stop reason = ") == 1
        assert changed.count("sframe_lldb.SFrameFrameProvider") == 1
        assert "[synthetic]" in changed.rpartition("(lldb) bt")[2]
    finally:
        process.kill()
        process.wait()


def test_attached_to_a_program_whose_stack_sframe_changes(lldb: str, tmp_path: Path) -> None:
    """The stop is shown once and without headers of stop-hooks, although the provider comes at that stop."""
    waiting = tmp_path / "waiting"
    with toolchain_needed():
        flags = ("-O1", "-Wa,--gsframe", "-fno-asynchronous-unwind-tables", f"-B{toolchain('amd64', 3)}/")
    alone = '__asm__(".cfi_sections .sframe");'
    source = tmp_path / "waiting.c"
    source.write_text(f"{alone}\n{WAITING.read_text(encoding='utf-8')}", encoding="utf-8")
    subprocess.run(["gcc", *flags, "-fasynchronous-unwind-tables", source, "-o", waiting], check=True, timeout=HANG)
    process = subprocess.Popen([waiting], stdout=subprocess.DEVNULL)
    wait_until_idle(process.pid)
    try:
        said = batch(lldb, "-O", IMPORT, "-o", f"process attach -p {process.pid}", *SHOW)
        attached, _, listed = said.partition(f"(lldb) {LIST}")
        assert attached.count("stop reason = ") == 1
        assert "Hook" not in attached
        assert listed.count("sframe_lldb.SFrameFrameProvider") == 1
        assert "`main" in listed
    finally:
        process.kill()
        process.wait()


LOADING = """
#include <dlfcn.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    dlclose(dlopen(argv[1], RTLD_NOW));
    void (*call)(void) = (void (*)(void))dlsym(dlopen(argv[2], RTLD_NOW), "call");
    while (argv[3] && access(argv[3], F_OK))
        usleep(1000);
    call();
    return 0;
}
"""
LOADED = """
__asm__(".cfi_sections .sframe");
volatile int number;
__attribute__((noinline)) void called(void) { number++; }
static __attribute__((noinline)) void between(void) { volatile int a[20]; a[number] = 1; called(); number++; }
void call(void) { between(); number++; }
"""


REGISTERED = """
import time
import lldb

def __lldb_init_module(debugger, internal_dict):
    until, result = time.monotonic() + {seconds}, lldb.SBCommandReturnObject()
    while "SFrameFrameProvider" not in (result.GetOutput() or "") and time.monotonic() < until:
        time.sleep(0.01)
        result.Clear()
        debugger.GetCommandInterpreter().HandleCommand({list!r}, result)
"""
"""Waits for the thread of the plugin that learns of files."""


def waiting_until_registered(folder: Path) -> str:
    """Return a command that waits until the plugin, which slept, has registered the provider."""
    script = folder / "registered.py"
    script.write_text(REGISTERED.format(list=LIST, seconds=HANG), encoding="utf-8")
    return f'command script import "{script}"'


@pytest.mark.parametrize(("version", "waits"), [("22.1", True), ("newest", True), ("newest", False)])
def test_item_43_a_library_needs_the_provider(version: str, waits: bool, tmp_path: Path) -> None:
    """The library has only SFrame, and LLDB does not know where ``between`` begins; the program needs nothing.

    If the program calls the library at once, it can stop before the plugin knows of the library.  Another library has
    been unloaded before, so the number of modules is the same.
    """
    lldb = find(version)
    (tmp_path / "loading.c").write_text(LOADING, encoding="utf-8")
    (tmp_path / "loaded.c").write_text(LOADED, encoding="utf-8")
    program, library = tmp_path / "loading", tmp_path / "loaded.so"
    with toolchain_needed():
        flags = ("-O1", "-fno-omit-frame-pointer", "-mno-red-zone", "-Wa,--gsframe", f"-B{toolchain('amd64', 3)}/")
    subprocess.run(["gcc", "-O1", tmp_path / "loading.c", "-o", program], check=True, timeout=HANG)
    other = tmp_path / "other.so"
    subprocess.run(["gcc", "-shared", "-xc", os.devnull, "-o", other], check=True, timeout=HANG)
    subprocess.run(
        ["gcc", *flags, "-fomit-frame-pointer", "-shared", "-fPIC", tmp_path / "loaded.c", "-o", library],
        check=True,
        timeout=HANG,
    )
    subprocess.run(["strip", library], check=True, timeout=HANG)
    tell = telling(library.name, tmp_path / "heard")
    launch = f"process launch -o /dev/null -- {other} {library} {tmp_path / 'heard' if waits else ''}"
    main = (tell, "breakpoint set -n main", launch, LIST)
    wait = waiting_until_registered(tmp_path)
    then = ("breakpoint set -n called", "continue", wait, LIST, "bt", "sframe mode off", "bt")
    said = batch(lldb, "-O", IMPORT, *(part for command in (*main, *then) for part in ("-o", command)), str(program))
    before, after = (part.partition("(lldb)")[0] for part in said.split(f"(lldb) {LIST}\n")[1:])
    assert NONE_REGISTERED in before
    assert after.count("sframe_lldb.SFrameFrameProvider") == 1
    assert said.count("stop reason = ") == 4  # two stops, and in the backtraces
    complete, native = stacks(said)
    assert native == complete[: len(native)] != complete
    shown = re.findall(r"^ +frame #\d+: .* loaded.so`", said.rpartition("(lldb) bt\n")[0], re.MULTILINE)
    assert len(shown) == 3


@pytest.mark.parametrize("when", ["-O", "-o"])
def test_attached_to_what_then_runs_another_program(lldb: str, when: str, tmp_path: Path) -> None:
    """The program that comes has SFrame alone: the provider is registered at the first stop that needs it."""
    sample, go = build("sframe_only"), tmp_path / "go"
    os.mkfifo(go)
    process = subprocess.Popen(["sh", "-c", f"read word < '{go}'; exec '{sample}'"], stdout=subprocess.DEVNULL)
    try:
        # Opened for reading too, so that opening does not wait for the stopped process.
        write = f"script import os; os.write(os.open({str(go)!r}, os.O_RDWR), b'go\\n')"
        wait = waiting_until_registered(tmp_path)
        attach = f"process attach -p {process.pid}"
        commands = (attach, "bt", write, "process continue", wait, "breakpoint set -n sample_stop")
        attached = [part for command in commands for part in ("-o", command)]
        said = batch(lldb, when, IMPORT, *attached, "-o", "process continue", *SHOW, "-o", "sframe compare")
        shown = said.partition("(lldb) sframe compare")[0]
        assert shown.count("sframe_lldb.SFrameFrameProvider") == 1
        backtrace = shown.rpartition("(lldb) bt")[2]
        assert all(f"`{name}" in backtrace for name in ("sample_stop", "innermost", "with_alloca", "main")), said
    finally:
        process.kill()
        process.wait()


def test_without_provider_in_the_settings_file(tmp_path: Path) -> None:
    (tmp_path / ".lldbinit").write_text(IMPORT + "\n" + IMPORT + "\n")
    commands = ("-o", "sframe bt", "-o", "sframe status")
    said = batch(find_without_provider(), *START, *commands, str(build("leaf")), init=True, HOME=str(tmp_path))
    assert said.count("has no scripted frame provider") == 1  # in the status
    assert "sample_stop (sample.h:" in said


def test_loads_wherever_the_two_folders_lie(lldb: str, tmp_path: Path) -> None:
    folder = tmp_path / "some where"
    folder.mkdir()
    for package in ("lldb_plugin", "sframe_unwind"):
        (folder / package).symlink_to(PLUGIN.parents[1] / package)
    load = f'command script import "{folder}/lldb_plugin/sframe_lldb.py"'
    assert_plugged(batch(lldb, "-O", load, *START, *SHOW, str(build("sframe_only"))))


def test_started_by_the_command_line(lldb: str) -> None:
    arguments = [*START, *SHOW, str(build("sframe_only"))]
    done = subprocess.run(
        [sys.executable, "-m", "sframe_unwind", "lldb", "--no-lldbinit", "--batch", *arguments],
        env=environment(lldb, SFRAME_UNWIND_LLDB=lldb),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    check(done.stdout + done.stderr)
    assert_plugged(done.stdout)
