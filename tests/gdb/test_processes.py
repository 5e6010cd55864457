"""All ways to have a process in GDB, and the events that can change it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.expectations import AGREEMENT, STOPS, STRIPPED_DEPTH, matches
from tests.gdb.compiling import compiled
from tests.gdb.driver import Debugger, batch, command_line, run
from tests.gdb.programs import built
from tests.gdb.stacks import names_in, without_arguments
from tests.missing import not_on_this_system
from tests.pairing import paired

ABI = "amd64"
BY_NAME = {stop.name: stop for stop in STOPS}
MARK = "----"
AT_STOP = ("break sample_stop", "run >/dev/null")
MODES = ("always", "off")


def _in_modes(*commands: str) -> list[str]:
    """Return commands in each of the modes, between marks."""
    return [
        part
        for mode in MODES
        for command in commands
        for part in (f"set sframe mode {mode}", f"echo {MARK}\\n", command, f"echo {MARK}\\n")
    ]


def _shown(output: str) -> list[str]:
    return output.split(f"{MARK}\n")[1::2]


def _check_same(output: str, sample: str) -> None:
    """Check that both backtraces are equal, and those of the sample."""
    ours, native = _shown(output)
    assert matches(BY_NAME[sample].functions, names_in(ours)), ours
    assert without_arguments(ours) == without_arguments(native)


def _core(debugger: Debugger, sample: str, folder: Path) -> tuple[Path, Path]:
    path = built(sample, ABI, 3)
    core = folder / "core"
    batch(debugger, *AT_STOP, f"generate-core-file {core}", "kill", executable=path)
    return path, core


@pytest.mark.parametrize("sample", ["callback", "threads", "plt"])
def test_core_file(debugger: Debugger, sample: str, tmp_path: Path) -> None:
    path, core = _core(debugger, sample, tmp_path)
    commands = (f"core-file {core}", *_in_modes("bt"), "sframe compare -all", "sframe status")
    output = batch(debugger, *commands, executable=path)
    _check_same(output, sample)
    verdicts = re.findall(r"^\d+ frames agree.*|^first difference.*", output, flags=re.MULTILINE)
    assert len(verdicts) == (4 if sample == "threads" else 1)
    assert all(" frames agree" in verdict for verdict in verdicts)
    assert re.search(rf"^{sample} +0x[0-9a-f]+ +3 +amd64", output, flags=re.MULTILINE)


def test_core_file_of_a_stripped_program_without_cfi(debugger: Debugger, tmp_path: Path) -> None:
    path, core = _core(debugger, "sframe_only_stripped", tmp_path)
    ours, native = _shown(batch(debugger, f"core-file {core}", *_in_modes("bt"), executable=path))
    assert len(names_in(ours)) >= STRIPPED_DEPTH
    assert names_in(ours) != names_in(native)


def test_core_file_without_its_program(debugger: Debugger, tmp_path: Path) -> None:
    _, core = _core(debugger, "callback", tmp_path)
    own = ("sframe status", "sframe bt", "sframe compare")
    output = batch(debugger, f"core-file {core}", *_in_modes("bt"), *own)
    ours, native = _shown(output)
    # The images in the core locate their SFrame, so the plugin may show more than GDB's guesses.
    assert without_arguments(ours).splitlines()[0] == without_arguments(native).splitlines()[0]
    assert "agree" in output or "first difference" in output


@contextmanager
def _waiting(executable: Path) -> Iterator[int]:
    """Yield the process id of a program that waits."""
    with subprocess.Popen([str(executable)], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield process.pid
        finally:
            process.kill()


@pytest.mark.parametrize("position", ["-pie", "-no-pie"])
def test_attached(debugger: Debugger, position: str, tmp_path: Path) -> None:
    executable = compiled("waiter.c", tmp_path, position, "-fPIE" if position == "-pie" else "-fno-pie")
    with _waiting(executable) as pid:
        commands = (f"attach {pid}", *_in_modes("bt"), "set sframe mode always", "sframe compare", "detach", "bt")
        output = batch(debugger, *commands)
    ours, native = _shown(output)
    assert matches(("...", "wait_here", "middle", "main"), names_in(ours))
    assert without_arguments(ours) == without_arguments(native)
    assert re.search(rf"^{AGREEMENT}$", output, flags=re.MULTILINE)
    assert re.search(r"^(No stack\.)$", output, flags=re.MULTILINE)


def test_stop_in_the_vdso(debugger: Debugger, tmp_path: Path) -> None:
    executable = compiled("clock.c", tmp_path)
    steps = [part for _ in range(12) for part in ("stepi", *_in_modes("bt"))]
    there = ("break now", "run", "break *__vdso_clock_gettime", "continue", "info symbol $pc")
    output = batch(debugger, *there, *steps, executable=executable)
    if "in section .text of system-supplied DSO" not in output:
        not_on_this_system("the C library does not ask this kernel's vDSO")
    shown = _shown(output)
    assert len(shown) == 24
    for ours, native in zip(shown[::2], shown[1::2]):
        assert without_arguments(ours) == without_arguments(native)
        assert matches(("...", "now", "main"), names_in(ours))


def test_two_inferiors(debugger: Debugger) -> None:
    first, second = built("callback", ABI, 3), built("dynamic", ABI, 2, "fp", pie=False)
    commands = (
        *AT_STOP,
        f'add-inferior -exec "{second}"',
        "inferior 2",
        "run >/dev/null",
        *_in_modes("bt"),
        "set sframe mode always",
        "sframe compare",
        "inferior 1",
        *_in_modes("bt"),
        "sframe compare",
        "sframe compare -all",
        "inferior 2",
        "kill",
        "sframe status",
        "inferior 1",
        "sframe compare",
        "remove-inferiors 2",
        "sframe compare",
    )
    output = batch(debugger, *commands, executable=first)
    shown = _shown(output)
    for sample, (ours, native) in zip(("dynamic", "callback"), (shown[:2], shown[2:])):
        assert matches(BY_NAME[sample].functions, names_in(ours))
        assert without_arguments(ours) == without_arguments(native)
    assert len(re.findall(rf"^{AGREEMENT}$", output, flags=re.MULTILINE)) == 6
    assert "first difference" not in output


@pytest.mark.usefixtures("fixed_addresses")
def test_run_twice(debugger: Debugger) -> None:
    path = built("callback", ABI, 3)
    output = batch(debugger, *AT_STOP, *_in_modes("bt"), "run >/dev/null", *_in_modes("bt"), executable=path)
    shown = _shown(output)
    assert len(shown) == 4
    assert len({without_arguments(text) for text in shown}) == 1
    assert matches(BY_NAME["callback"].functions, names_in(shown[0]))


def test_rebuilt_between_two_runs(debugger: Debugger, tmp_path: Path) -> None:
    program = tmp_path / "program"
    shutil.copy(built("callback", ABI, 3), program)
    os.utime(program, (1, 1))  # GDB checks the time
    newer = built("dynamic", ABI, 3, "fp")
    output = batch(
        debugger,
        *AT_STOP,
        *_in_modes("bt"),
        "kill",
        f"shell cp '{newer}' '{program}'",
        "set sframe mode always",
        "run >/dev/null",
        *_in_modes("bt"),
        "set sframe mode always",
        "sframe compare",
        executable=program,
    )
    shown = _shown(output)
    for sample, (ours, native) in zip(("callback", "dynamic"), (shown[:2], shown[2:])):
        assert matches(BY_NAME[sample].functions, names_in(ours)), output
        assert without_arguments(ours) == without_arguments(native)
    assert " frames agree" in output.splitlines()[-1]


def test_libraries_that_come_and_go(debugger: Debugger) -> None:
    path = built("dlopen", ABI, 3)
    again = ("continue", *_in_modes("bt"), "set sframe mode always", "sframe compare")
    output = batch(debugger, *AT_STOP, *_in_modes("bt"), *again, *again, executable=path)
    shown = _shown(output)
    assert len(shown) == 6
    for ours, native in zip(shown[::2], shown[1::2]):
        assert matches(BY_NAME["dlopen"].functions, names_in(ours))
        assert without_arguments(ours) == without_arguments(native)
    assert len(re.findall(rf"^{AGREEMENT}$", output, flags=re.MULTILINE)) == 2


NAVIGATION = (
    "up",
    "up 2",
    "down",
    "frame 3",
    "frame function descend_wide",
    "info frame",
    "frame 0",
    "bt 3",
    "bt -2",
    "finish",
    "bt",
    "up",
    "info locals",
    "frame apply 3 -q p $pc",
)


@pytest.mark.usefixtures("fixed_addresses")
def test_finish_up_down_frame(debugger: Debugger) -> None:
    path = built("recursion", ABI, 3, "O0")
    shown = []
    for mode in MODES:
        commands = [part for command in NAVIGATION for part in (f"echo {MARK}\\n", command, f"echo {MARK}\\n")]
        shown.append(_shown(batch(debugger, *AT_STOP, f"set sframe mode {mode}", *commands, executable=path)))
    for command, ours, native in paired(NAVIGATION, *shown):
        if command == "info frame":
            # It lists the saved registers, of which SFrame knows fewer.
            ours, native = (text.partition(" Saved registers:")[0] for text in (ours, native))
        if command == "info locals":
            # Most elements are what the dynamic loader left on the stack: the kernel's random bytes, for example.
            ours, native = (re.sub(r"^numbers = \{.*\}$", "numbers = {}", text, flags=re.M) for text in (ours, native))
        assert ours == native, command


@pytest.mark.parametrize("fragment", ["finish", "up", "tbreak main", "next", "until", "advance with_vla"])
@pytest.mark.usefixtures("fixed_addresses")
def test_execution_commands_that_need_the_caller(debugger: Debugger, fragment: str) -> None:
    path = built("dynamic", ABI, 3)
    ends = []
    for mode in MODES:
        output = batch(debugger, *AT_STOP, f"set sframe mode {mode}", fragment, fragment, "bt", executable=path)
        ends.append(re.sub(r"process \d+", "process", without_arguments(output)).partition("\n")[2])
    assert ends[0] == ends[1]


def test_a_program_that_gdb_has_no_symbols_of(debugger: Debugger) -> None:
    path = built("sframe_only_stripped", ABI, 3)
    output = batch(debugger, *AT_STOP, *_in_modes("bt"), "sframe bt", "sframe status", executable=path)
    ours, native = _shown(output)
    assert len(names_in(ours)) >= STRIPPED_DEPTH > 2
    assert names_in(ours) != names_in(native)


def test_without_the_plugin_nothing_is_left_behind(debugger: Debugger) -> None:
    output = run(command_line(debugger, "-batch", "-ex", "help sframe", plugin=None), statuses=(0, 1))
    assert "Undefined command" in output
