"""Running processes: their stacks, and that they continue afterwards in every case."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sframe_unwind.process import not_stopping
from sframe_unwind.process.ptrace import PATIENCE
from tests.gdb import driver
from tests.hanging import HANG
from tests.process.command import NOWHERE, Done, backtrace, functions, only_line, unprivileged
from tests.process.programs import compiled, is_stopped, running
from tests.waiting import wait_until, wait_until_idle, wait_until_it_worked

SECONDS = HANG
SHELF = "shop::Shelf<{}>::wait(int, {})"
CLERK = [*[SHELF.format("double", "double")] * 4, "shop::clerk(void*)"]
MAIN = [*[SHELF.format("char const*", "char const*")] * 3, "main"]


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the program of `waiting.cpp`, and return its path."""
    return compiled("waiting.cpp", tmp_path_factory.mktemp("waiting"))


def own_functions(frames: list[dict[str, Any]]) -> list[str]:
    """Return the functions from the innermost one of the program outward.

    Within ``pause``, glibc 2.41 has three more frames, without names if it is stripped.
    """
    found = functions(frames)
    return found[next((level for level, name in enumerate(found) if name.startswith("shop::")), 0) :]


def settled(process: int) -> Done:
    """Return what the command prints once the threads of a process are where they wait."""
    wait_until_idle(process)
    return backtrace("--pid", str(process), "--json", *NOWHERE)


def test_all_threads_with_names_of_cxx(waiting: Path) -> None:
    with running(waiting) as process:
        done = settled(process)
        assert (done.status, done.errors) == (0, "")
        main, clerk = map(own_functions, done.threads.values())
        assert main[: len(MAIN)] == MAIN
        assert clerk[: len(CLERK)] == CLERK
        assert done.output.count('"end": "outermost frame"') == 2
        assert next(iter(done.threads)) == str(process)
        assert not is_stopped(process)
        text = backtrace("--pid", str(process), *NOWHERE).output.splitlines()
        assert text[0] == f'Thread {process} "waiting"'


def test_stacks_are_those_of_a_core_file_and_of_gdb(waiting: Path, tmp_path: Path) -> None:
    gdb = driver.find("pypi") or driver.find("system")
    assert gdb is not None
    with running(waiting) as process:
        live = settled(process)
        commands = [f"attach {process}", f"generate-core-file {tmp_path / 'core'}", "thread apply all bt", "detach"]
        shown = driver.batch(gdb, "set sframe mode off", *commands)
        again = backtrace("--pid", str(process), "--json", *NOWHERE)
    core = backtrace("--core", tmp_path / "core", "--json", *NOWHERE)
    assert core.threads == live.threads == again.threads
    for frames in live.threads.values():
        for frame in frames[1:4]:
            assert f"{frame['pc']:#018x} in " in shown


def test_handler_on_a_stack_of_its_own(waiting: Path) -> None:
    with running(waiting, "signal") as process:
        done = settled(process)
        frames = done.threads[str(process)]
        assert own_functions(frames)[:2] == ["shop::handle(int)", "<signal handler called>"]
        assert frames[functions(frames).index("<signal handler called>")]["unwinder"] == "signal"
        assert functions(frames)[-9:-3] == [*["shop::interrupted(int)"] * 5, "main"]
        assert not is_stopped(process)


def test_threads_that_come_and_go(waiting: Path) -> None:
    with running(waiting, "churn") as process:
        for _ in range(10):
            done = backtrace("--pid", str(process), "--json", *NOWHERE)
            assert (done.status, done.errors) == (0, "")
            assert str(process) in done.threads
            assert not is_stopped(process)


def test_interrupted_at_any_time_it_lets_the_process_go_on(waiting: Path) -> None:
    command = [sys.executable, "-m", "sframe_unwind", "backtrace", "--pid"]
    with running(waiting) as process:
        for milliseconds in range(20, 200, 18):  # of work; it takes more altogether
            started = subprocess.Popen([*command, str(process)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            wait_until_it_worked(started.pid, milliseconds / 1000)
            started.send_signal(signal.SIGINT)
            started.wait(timeout=SECONDS)
            assert not is_stopped(process)


def test_process_that_is_stopped_stays_so(waiting: Path) -> None:
    with running(waiting) as process:
        settled(process)
        os.kill(process, signal.SIGSTOP)
        wait_until(lambda: is_stopped(process), "the process is stopped")
        done = backtrace("--pid", str(process), "--json", *NOWHERE)
        assert own_functions(done.threads[str(process)])[: len(MAIN)] == MAIN
        assert is_stopped(process)
        os.kill(process, signal.SIGCONT)
        wait_until(lambda: not is_stopped(process), "the process goes on")


def test_no_such_process() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    done = backtrace("--pid", str(ended.pid))
    assert (done.status, done.output) == (2, "")
    assert only_line(done.errors) == f"sframe-unwind: process {ended.pid}: no such process"


def test_process_that_has_ended() -> None:
    ended = subprocess.Popen(["true"])
    try:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        done = backtrace("--pid", str(ended.pid))
    finally:
        ended.wait()
    assert (done.status, done.output) == (2, "")
    assert "it has ended (zombie)" in only_line(done.errors)


def test_process_of_another_user() -> None:
    done = unprivileged("--pid", str(os.getpid() if os.getuid() == 0 else 1))
    assert (done.status, done.output) == (2, "")
    assert only_line(done.errors).endswith(": not permitted")


def test_process_that_is_debugged_already(waiting: Path) -> None:
    gdb = driver.find("pypi") or driver.find("system")
    assert gdb is not None
    with running(waiting) as process:
        command = driver.command_line(gdb, "-p", str(process), "-batch", "-ex", "shell echo attached; sleep 86400")
        debugging = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        try:
            assert debugging.stdout is not None
            while "attached" not in debugging.stdout.readline():
                pass
            done = backtrace("--pid", str(process))
        finally:
            os.killpg(debugging.pid, signal.SIGKILL)
            debugging.communicate(timeout=SECONDS)
    assert (done.status, done.output) == (2, "")
    expected = f"process {process}: cannot be stopped: process {debugging.pid} is debugging it"
    assert only_line(done.errors) == f"sframe-unwind: {expected}"


def test_threads_in_uninterruptible_sleep(tmp_path: Path) -> None:
    """They do not stop; the kernel tells their pc and SP."""
    with running(compiled("hung.c", tmp_path)) as process:
        others = sorted(int(task.name) for task in Path(f"/proc/{process}/task").iterdir() if task.name != str(process))
        wait_until(lambda: all(state(process, thread) == "D" for thread in others), "all other threads hang")
        done = backtrace("--pid", str(process), "--json", *NOWHERE)
        text = backtrace("--pid", str(process), *NOWHERE).output
    assert done.status == 2
    expected = f"process {process}: 3 threads not stopped: in uninterruptible sleep (state D)"
    assert only_line(done.errors) == f"sframe-unwind: {expected}"
    threads = json.loads(done.output)["threads"]
    assert [int(thread["id"]) for thread in threads] == [process, *others]
    why = "not stopped: state D, registers from the kernel's record of the system call"
    assert [thread["not_stopped"] for thread in threads] == [None, why, why, why]
    assert text.count(f'"hung", {why}\n') == 3
    for thread in threads[1:]:
        assert functions(thread["frames"])[:2] == ["vfork", "hang"]
        assert thread["end"] == "outermost frame"


def state(process: int, thread: int) -> str:
    """Return the state of a thread, as a letter."""
    text = Path(f"/proc/{process}/task/{thread}/stat").read_text(encoding="ascii", errors="replace")
    return text.rpartition(")")[2].split()[0]


def test_threads_in_uninterruptible_sleep_are_waited_for_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread hangs, one sleeps again and again, and one wakes up."""
    now, looks = 0.0, 0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    def field(_process: int, thread: int, name: str) -> str:
        nonlocal looks
        looks += 1
        states = {1: ("D", "7"), 2: ("D", str(looks)), 3: ("D" if now < 0.5 else "S", "7")}
        return dict(zip(("State", "voluntary_ctxt_switches"), states[thread]))[name]

    monkeypatch.setattr(not_stopping, "field", field)
    monkeypatch.setattr(f"{not_stopping.__name__}.time.sleep", sleep)
    monkeypatch.setattr(f"{not_stopping.__name__}.time.monotonic", lambda: now)
    assert not_stopping.still_sleeping(1, [1, 2, 3]) == [1]
    assert PATIENCE <= now < PATIENCE + 0.1
