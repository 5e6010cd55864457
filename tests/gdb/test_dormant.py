"""A program without SFrame: GDB is as it is without the plugin.  With SFrame, the selected frame stays selected."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.gdb.compiling import compiled
from tests.gdb.driver import CHECKOUT, Debugger, batch
from tests.gdb.typed import typed
from tests.missing import absent

SELECTING = (
    "break check_failed",
    "commands",
    "silent",
    "up 2",
    "end",
    "run",
    "frame",
    "print state",
    "continue",
    "frame",
)
LOADED = (
    "python import sys; packages = ('gdb_plugin', 'sframe_unwind')",
    "python ours = [module for name, module in sys.modules.items() if name.split('.')[0] in packages]",
    "python print('lines', sum(len(open(module.__file__).readlines()) for module in ours))",
    "python print('modules', *sorted(sys.modules))",
)
AWAKE = "python print('awake', any(unwinder.name == 'sframe' for unwinder in gdb.frame_unwinders))"


@pytest.mark.parametrize("sframe", [False, True])
@pytest.mark.parametrize("mode", ["auto", "always", "fallback"])
@pytest.mark.usefixtures("fixed_addresses")
def test_item_46_frame_that_the_commands_of_a_breakpoint_select(
    debugger: Debugger, mode: str, sframe: bool, tmp_path: Path
) -> None:
    executable = compiled("selecting.c", tmp_path, "-O0", sframe=sframe)
    alone = typed(debugger, executable, SELECTING, plugin=False)
    assert alone.count("#2 ") == 4
    assert typed(debugger, executable, SELECTING, more=("-iex", f"set sframe mode {mode}")) == alone


@pytest.mark.parametrize("level", [1, 2, 3])
@pytest.mark.usefixtures("fixed_addresses")
def test_annotations_are_those_of_gdb_alone(debugger: Debugger, level: int, tmp_path: Path) -> None:
    executable = compiled("selecting.c", tmp_path, "-O0", sframe=False)
    lines = (f"set annotate {level}", *SELECTING)
    assert typed(debugger, executable, lines) == typed(debugger, executable, lines, plugin=False)


def test_little_of_the_plugin_is_loaded(debugger: Debugger, tmp_path: Path) -> None:
    executable = compiled("selecting.c", tmp_path, "-O0", sframe=False)
    output = batch(debugger, "break check_failed", "run", "bt", AWAKE, *LOADED, executable=executable)
    assert "awake False" in output
    loaded = int(output.partition("lines ")[2].split()[0])
    everything = [*CHECKOUT.glob("gdb_plugin/**/*.py"), *CHECKOUT.glob("sframe_unwind/**/*.py")]
    assert loaded < 1200 < sum(len(path.read_text(encoding="utf-8").splitlines()) for path in everything)
    alone = batch(
        debugger, "break check_failed", "run", "bt", LOADED[0], LOADED[-1], executable=executable, plugin=None
    )
    modules, without = (set(text.rpartition("\nmodules ")[2].split()) for text in (output, alone))
    others = {name for name in modules - without if name.partition(".")[0] not in ("gdb_plugin", "sframe_unwind")}
    assert others <= {"__future__", "_struct", "struct"}


@pytest.mark.usefixtures("fixed_addresses")
def test_a_library_wakes_it(debugger: Debugger, tmp_path: Path) -> None:
    executable = compiled("plugs.c", tmp_path, sframe=False)
    libraries = [tmp_path / "plain.so", tmp_path / "described.so", tmp_path / "again.so"]
    for library in libraries:
        folder = tmp_path / library.stem
        folder.mkdir()
        compiled("plug.c", folder, "-shared", "-fPIC", sframe=library.stem == "described").rename(library)
    lines = ("break back", "run", AWAKE, "continue", AWAKE, "bt", "continue", AWAKE)
    output = typed(debugger, executable, lines, arguments=[str(library) for library in libraries])
    assert [line.split()[-1] for line in output.splitlines() if "awake " in line] == ["False", "True", "False"]
    alone = typed(
        debugger, executable, [line for line in lines if line != AWAKE], False, [str(one) for one in libraries]
    )
    assert [line for line in output.splitlines() if "#" in line] == [line for line in alone.splitlines() if "#" in line]


@pytest.mark.parametrize("command", ["set sframe strict on", "set sframe generate on"])
def test_the_user_wakes_it(debugger: Debugger, command: str, tmp_path: Path) -> None:
    executable = compiled("selecting.c", tmp_path, "-O0", sframe=False)
    back = command.replace(" on", " off")
    output = batch(debugger, "break check_failed", "run", command, AWAKE, back, AWAKE, executable=executable)
    assert output.split("awake ")[1:] == ["True\n", "False\n"]


def test_commands_work_while_it_sleeps(debugger: Debugger, tmp_path: Path) -> None:
    executable = compiled("selecting.c", tmp_path, "-O0", sframe=False)
    commands = ("up", "sframe bt", "sframe compare", "sframe status", "frame", AWAKE)
    output = batch(debugger, "break check_failed", "run", *commands, executable=executable)
    assert "frames agree" in output
    assert output.splitlines()[-1] == "awake False"
    assert output.rpartition("\n#1 ")[2].startswith(" ")


@pytest.mark.parametrize(("sframe", "more"), [(False, 0), (True, 20)])
@pytest.mark.usefixtures("fixed_addresses")
def test_packets_of_a_remote_session(debugger: Debugger, sframe: bool, more: int, tmp_path: Path) -> None:
    """Without SFrame, there is none more; with it, headers and tables of the program are read, once."""
    if shutil.which("gdbserver") is None:
        absent("gdbserver is not installed: packets of remote sessions stay untested")
    executable = compiled("selecting.c", tmp_path, "-O0", sframe=sframe)
    server = f"target remote | exec gdbserver --once - {executable}"
    lines = ("set sysroot /", "set debug remote 1", server, "break check_failed", "continue", "bt", "finish")
    with_it, alone = (typed(debugger, executable, lines, plugin) for plugin in (True, False))
    # gdbserver 16 reads memory by a packet of its own, whose answer is binary.
    assert alone.count("Sending packet: $m") + alone.count("Sending packet: $x") > 10
    assert (
        alone.count("Sending packet: ") <= with_it.count("Sending packet: ") <= alone.count("Sending packet: ") + more
    )
