"""Moving the program: its stops and all output are the same with and without the plugin."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.gdb.compiling import compiled
from tests.gdb.driver import Debugger, command_line, run

MODES = ("off", "fallback", "always")
NO_ARGUMENTS = "set print frame-arguments none"
_VARYING = re.compile(r"0x[0-9a-f]+|process \d+|LWP \d+")


def shown(debugger: Debugger, executable: Path, mode: str | None, *commands: str) -> str:
    """Return GDB's output for commands in a mode; empty mode: without the plugin."""
    settings = []
    if mode is not None:
        settings = [f"set sframe mode {'always' if mode == 'strict' else mode}"]
        settings += ["set sframe strict on"] if mode == "strict" else []
    arguments = [part for command in (*settings, *commands) for part in ("-ex", command)]
    line = command_line(debugger, "-batch", *arguments, str(executable))
    if mode is None:
        line = [part for part in line if part]
        at = next(index for index, part in enumerate(line) if part.startswith("source "))
        del line[at - 1 : at + 1]
    return _VARYING.sub("*", run(line, statuses=(0, 1)))


def check_same(debugger: Debugger, executable: Path, *commands: str, strict: bool = True) -> str:
    """Check that GDB prints the same in each mode as without the plugin; return the output.

    :param strict: also check the mode in which only SFrame unwinds; arguments in registers are then unknown.
    """
    without = shown(debugger, executable, None, *commands)
    for mode in MODES:
        assert shown(debugger, executable, mode, *commands) == without, mode
    if strict:
        commands = (NO_ARGUMENTS, *commands)
        assert shown(debugger, executable, "strict", *commands) == shown(debugger, executable, None, *commands)
    return without


@pytest.mark.parametrize("optimisation", ["-O0", "-O1", "-O2", "-Os"])
def test_stepping(debugger: Debugger, optimisation: str, tmp_path: Path) -> None:
    executable = compiled("moving.c", tmp_path, optimisation)
    places = "frame"
    commands = ["break main", "run", "next", places, "next", places, "step", places, "finish", places, "step 3", places]
    commands += ["stepi", "stepi 7", places, "up", "finish", "until", "advance counted", "next 4", places, "next 20"]
    output = check_same(debugger, executable, *commands)
    assert "counted" in output


@pytest.mark.parametrize("optimisation", ["-O0", "-O2"])
def test_stack_after_a_step_into_a_function(debugger: Debugger, optimisation: str, tmp_path: Path) -> None:
    executable = compiled("moving.c", tmp_path, optimisation)
    stacks = [part for _ in range(6) for part in ("step", "bt")]
    check_same(debugger, executable, "break twice", "run", *stacks)


def test_condition_that_looks_at_callers(debugger: Debugger, tmp_path: Path) -> None:
    executable = compiled("moving.c", tmp_path, "-O2")
    commands = ('break add if $_caller_is("blue")', "ignore 1 1000", "run", "info breakpoints")
    assert "already hit 10 times" in check_same(debugger, executable, *commands)


def test_stop_method_that_looks_at_callers(debugger: Debugger, tmp_path: Path) -> None:
    executable = compiled("moving.c", tmp_path, "-O2")
    script = tmp_path / "callers.py"
    script.write_text(
        "import gdb\n"
        "names = []\n"
        "class Stop(gdb.Breakpoint):\n"
        "    def stop(self):\n"
        "        names.append(gdb.newest_frame().older().name())\n"
        "        return False\n"
        "Stop('add')\n"
        "gdb.execute('run')\n"
        "print(names)\n",
        encoding="utf-8",
    )
    output = check_same(debugger, executable, f"source {script}")
    assert "'twice', 'twice', 'twice', 'twice', 'twice', 'twice', 'twice', 'twice', 'blue', 'red', 'red'" in output


def test_software_watchpoint(debugger: Debugger, tmp_path: Path) -> None:
    executable = compiled("moving.c", tmp_path, "-O0")
    commands = ("break counted", "run", "set can-use-hw-watchpoints 0", "next", "watch i", "continue", "continue")
    assert check_same(debugger, executable, *commands).count("New value = ") == 2


@pytest.mark.parametrize("optimisation", ["-O0", "-O2"])
def test_record_and_reverse(debugger: Debugger, optimisation: str, tmp_path: Path) -> None:
    executable = compiled("moving.c", tmp_path, optimisation)
    back = ("reverse-stepi", "reverse-step", "reverse-finish", "frame", "reverse-next", "frame", "next", "frame")
    commands = ("break counted", "run", "record", "next", "step", *back)
    check_same(debugger, executable, *commands)


def test_call_that_stops(debugger: Debugger, tmp_path: Path) -> None:
    executable = compiled("moving.c", tmp_path, "-O2")
    commands = ("break counted", "run", "break add", "call twice(3)", "bt", "up")
    output = check_same(debugger, executable, *commands, "finish", "bt")
    assert "<function called from gdb>" in output


def test_exception_that_is_stepped_over(debugger: Debugger, tmp_path: Path) -> None:
    executable = compiled("throwing.cc", tmp_path, "-O2", "-Wl,--no-as-needed", "-lstdc++")
    output = check_same(debugger, executable, "break main", "run", "step 10", "frame", "next 5", "frame")
    assert "internal-error" not in output


@pytest.mark.parametrize("levels", [0, 1])
def test_return(debugger: Debugger, levels: int, tmp_path: Path) -> None:
    executable = compiled("preserved.c", tmp_path, "-O2", "-fno-ipa-ra")
    commands = ("break leaf", "run", *["up"] * levels, "return 42", "delete", "continue")
    output = check_same(debugger, executable, *commands, strict=False)
    assert re.search(r"^i=2 r=\d+ x=100 y=200 z=300 w=400$", output, re.MULTILINE)


def test_return_is_refused_where_registers_are_not_known(debugger: Debugger, tmp_path: Path) -> None:
    executable = compiled("preserved.c", tmp_path, "-O2", "-fno-ipa-ra")
    commands = ("break leaf", "run", "up", "return 42", "delete", "continue")
    output = shown(debugger, executable, "strict", *commands)
    refused = re.findall(r"^sframe: the caller's rbx, r12, r13, r14, r15 cannot be restored.*\n", output, re.MULTILINE)
    assert len(refused) == 1
    assert output.partition(refused[0])[2].count("w=400") == 3


def test_local_of_a_function_in_two_parts_is_watched(debugger: Debugger, tmp_path: Path) -> None:
    executable = compiled("parts.c", tmp_path, "-O2")
    commands = ("break parted", "run", "watch total", *["continue"] * 8, "bt 1")
    output = check_same(debugger, executable, *commands)
    assert output.count("New value = ") > 4


def test_identity_at_the_first_instruction(debugger: Debugger, tmp_path: Path) -> None:
    executable = compiled("moving.c", tmp_path, "-O1", "-fno-align-functions")
    identity = "python print(gdb.selected_frame() == gdb.newest_frame().older().newer())"
    commands = ("break *twice", "run", identity, "watch sum", "continue", "finish", "finish", "frame")
    check_same(debugger, executable, *commands)
