"""Sourcing the plugin: once, twice, from an init file, and from a folder that contains nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.expectations import STOPS
from tests.gdb.driver import CHECKOUT, PLUGIN, Debugger, batch, command_line, environment, run
from tests.gdb.programs import built
from tests.gdb.stacks import names_in

ABI = "amd64"
LEAF = next(stop for stop in STOPS if stop.sample == "leaf")
STOPPED = ("break sample_stop", "run >/dev/null", "bt", "sframe compare")


def _arguments(*commands: str) -> list[str]:
    return [part for command in commands for part in ("-ex", command)]


def _check(output: str) -> None:
    assert names_in(output)[: len(LEAF.functions)] == list(LEAF.functions)
    assert output.splitlines()[-1].startswith(f"{len(LEAF.functions)} frames agree")


def test_prints_nothing_that_a_program_would_read(debugger: Debugger) -> None:
    assert run(command_line(debugger, "-batch")) == ""
    assert "sframe" not in run(command_line(debugger, "-i=mi3"))


def test_twice_is_as_good_as_once(debugger: Debugger) -> None:
    again = [f"source {PLUGIN}"] * 2
    assert batch(debugger, *again) == ""
    path = built("leaf", ABI, 3)
    counted = "python print(len([u for u in gdb.frame_unwinders if u.name == 'sframe']))"
    output = batch(debugger, "set sframe mode fallback", *again, "show sframe mode", counted, *STOPPED, executable=path)
    assert "is 'fallback'" in output
    assert "\n1\n" in output
    _check(output)


def test_sourced_again_in_the_middle_of_a_session(debugger: Debugger) -> None:
    path = built("leaf", ABI, 3)
    output = batch(debugger, *STOPPED, f"source {PLUGIN}", "bt", "sframe compare", executable=path)
    _check(output)
    assert output.count("\nBreakpoint 1, ") == 1


def test_leaves_the_names_of_the_users_python_alone(debugger: Debugger) -> None:
    """GDB runs a script that is sourced in the namespace of the commands that the user types."""
    mine = "python sys = Path = plugin = 'mine'; before = dict(globals())"
    changed = (
        "python print([name for name in globals() if name[:2] != '__' and globals()[name] is not before.get(name)])"
    )
    shown = run(command_line(debugger, "-batch", *_arguments(mine, f"source {PLUGIN}", changed), plugin=None))
    assert shown == "['before']\n"


@pytest.mark.parametrize("name", [".gdbinit", ".config/gdb/gdbinit"])
def test_from_an_init_file(debugger: Debugger, name: str, tmp_path: Path) -> None:
    init = tmp_path / name
    init.parent.mkdir(parents=True, exist_ok=True)
    init.write_text(f"source {PLUGIN}\n", encoding="utf-8")
    env = environment(tmp_path)
    env.pop("XDG_CONFIG_HOME", None)
    arguments = ("-batch", *_arguments(*STOPPED), str(built("leaf", ABI, 3)))
    output = run(command_line(debugger, *arguments, plugin=None, init=True), env)
    assert "sframe-unwind " not in output
    _check(output)


@pytest.mark.parametrize("debugger", ["system"], indirect=True)  # the other's Python has both packages installed
def test_from_a_folder_with_nothing_else(debugger: Debugger, tmp_path: Path) -> None:
    """pip installs the two packages side by side, and the system's GDB has no pyelftools."""
    for package in ("gdb_plugin", "sframe_unwind"):
        shutil.copytree(CHECKOUT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    found = "python import importlib.util; print('elftools', importlib.util.find_spec('elftools') is not None)"
    assert "elftools False" in batch(debugger, found)
    script = tmp_path / "gdb_plugin" / "sframe_gdb.py"
    where = "python import gdb_plugin, sframe_unwind; print(gdb_plugin.__file__, sframe_unwind.__file__)"
    others = ("sframe status", "sframe bt", "sframe explain", "set sframe mode fallback", "bt")
    arguments = _arguments(where, *STOPPED[:-1], *others, "set sframe mode always", STOPPED[-1])
    path = built("leaf", ABI, 3)
    output = run(command_line(debugger, "-batch", *arguments, str(path), plugin=script), cwd=tmp_path)
    assert f"{tmp_path}/gdb_plugin/__init__.py {tmp_path}/sframe_unwind/__init__.py" in output
    assert str(CHECKOUT / "sframe_unwind") not in output
    _check(output)


def test_no_python_path_entry_hides_what_was_there(debugger: Debugger) -> None:
    output = batch(debugger, "python import sys; print('last:', sys.path[-1])")
    assert f"last: {CHECKOUT}" in output


@pytest.mark.parametrize("command", ["bt", "info frame", "up", "finish", "info threads"])
def test_without_a_process_gdb_says_what_it_always_says(debugger: Debugger, command: str) -> None:
    path = built("leaf", ABI, 3)
    native = run(command_line(debugger, "-batch", "-ex", command, str(path), plugin=None), statuses=(0, 1))
    assert batch(debugger, command, executable=path) == native
