"""A breakpoint's `commands` that show backtraces: GDB must not run them from within the unwinder.

GDB runs pending breakpoint commands after any command that Python executes, and the plugin executes one to list the
modules.  If that happened between a stop and its commands, they would run in the middle of the backtrace.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.expectations import AGREEMENT, SFRAME_ONLY, STOPS, matches
from tests.gdb.driver import PLUGIN, Debugger, command_line, run
from tests.gdb.programs import built
from tests.gdb.stacks import names_in, without_arguments
from tests.gdb.terminal import terminal

ABI = "amd64"
RECURSION = next(stop for stop in STOPS if stop.name == "recursion")
DLOPEN = next(stop for stop in STOPS if stop.name == "dlopen")


def _session(debugger: Debugger, executable: Path, folder: Path, *lines: str, plugin: bool = True) -> str:
    script = folder / "script.gdb"
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = command_line(debugger, "-batch", "-x", str(script), str(executable), plugin=PLUGIN if plugin else None)
    return run(command)


def _blocks(output: str) -> list[str]:
    """Return the output between the marks, which must not be nested."""
    marks = re.findall(r"^<begin>$|^<end>$", output, flags=re.MULTILINE)
    assert marks == ["<begin>", "<end>"] * (len(marks) // 2)
    return re.findall(r"^<begin>\n(.*?)^<end>$", output, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("silent", [True, False], ids=["silent", "loud"])
@pytest.mark.usefixtures("fixed_addresses")
def test_backtrace_and_continue(debugger: Debugger, silent: bool, tmp_path: Path) -> None:
    commands = [*(["silent"] if silent else []), "echo <begin>\\n", "bt", "echo <end>\\n", "continue", "end"]
    lines = ["break descend", "commands", *commands, "run >/dev/null"]
    path = built("recursion", ABI, 3)
    blocks = _blocks(_session(debugger, path, tmp_path, *lines))
    native = _blocks(_session(debugger, path, tmp_path, *lines, plugin=False))
    assert len(blocks) == RECURSION.functions.count("descend")
    assert [without_arguments(block) for block in blocks] == [without_arguments(block) for block in native]
    assert matches(RECURSION.functions[1:], names_in(blocks[-1]))


def test_the_commands_of_the_plugin(debugger: Debugger, tmp_path: Path) -> None:
    own = ["sframe bt", "sframe compare", "sframe status"]
    commands = ["silent", "echo <begin>\\n", *own, "echo <end>\\n", "continue", "end"]
    lines = ["break descend", "commands", *commands, "run >/dev/null"]
    blocks = _blocks(_session(debugger, built("recursion", ABI, 3), tmp_path, *lines))
    assert len(blocks) == RECURSION.functions.count("descend")
    for number, block in enumerate(blocks):
        assert re.search(r"^end: main; ", block, flags=re.MULTILINE)
        assert re.search(rf"^{AGREEMENT}$", block, flags=re.MULTILINE)
        assert block.count(" descend ") >= number


def test_libraries_that_come_and_go_meanwhile(debugger: Debugger, tmp_path: Path) -> None:
    commands = ["silent", "echo <begin>\\n", "bt", "up", "info frame", "echo <end>\\n", "continue"]
    lines = ["break sample_stop", "commands", *commands, "end", "run >/dev/null"]
    blocks = _blocks(_session(debugger, built("dlopen", ABI, 3), tmp_path, *lines))
    assert len(blocks) == DLOPEN.hits
    for block in blocks:
        assert matches(DLOPEN.functions, names_in(block))


def test_gdb_ends_well_with_commands_left(debugger: Debugger, tmp_path: Path) -> None:
    """GDB ends properly if a script that never shows a prompt ends with commands pending."""
    path = built("callback", ABI, 3)
    lines = ["break sample_stop", "commands", "silent", "bt", "end", "run >/dev/null", "sframe compare", "bt"]
    output = _session(debugger, path, tmp_path, *lines)
    assert output.count("#0  sample_stop ") == 2
    assert re.search(rf"^{AGREEMENT}$", output, flags=re.MULTILINE)


@pytest.mark.parametrize("commands", [["silent"], ["bt 1"], ["sframe bt 1", "bt 1"]], ids=" ".join)
def test_sframe_is_used_at_the_prompt_after_commands(debugger: Debugger, commands: list[str]) -> None:
    path = built(SFRAME_ONLY.sample, ABI, 3)
    with terminal(debugger, path, "break sample_stop") as gdb:
        gdb.type("commands\n")
        for line in commands:
            gdb.wait(">")
            gdb.type(f"{line}\n")
        gdb.wait(">")
        gdb.run("end")
        gdb.run("run")
        assert matches(SFRAME_ONLY.functions, names_in(gdb.run("bt")))


def test_sframe_is_used_in_commands_from_the_second_stop_on(debugger: Debugger, tmp_path: Path) -> None:
    commands = ["silent", "echo <begin>\\n", "bt", "echo <end>\\n", "continue", "end"]
    path = built(SFRAME_ONLY.sample, ABI, 3)
    lines = ["break main", "run >/dev/null", "break with_alloca", "commands", *commands, "continue"]
    (block,) = _blocks(_session(debugger, path, tmp_path, *lines))
    assert matches(SFRAME_ONLY.functions[2:], names_in(block))


def test_python_stop_handlers(debugger: Debugger, tmp_path: Path) -> None:
    """A stop handler and a breakpoint's `stop` that read frames, together with commands."""
    handler = [
        "python",
        "class Watching(gdb.Breakpoint):",
        "    def stop(self):",
        "        gdb.write('seen %s\\n' % gdb.newest_frame().older().name())",
        "        return True",
        "Watching('descend')",
        "gdb.events.stop.connect(lambda event: gdb.write('stopped %s\\n' % gdb.newest_frame().older().name()))",
        "end",
    ]
    commands = ["commands 1", "echo <begin>\\n", "bt 2", "echo <end>\\n", "continue", "end"]
    path = built("recursion", ABI, 3)
    lines = [*handler, *commands, "run >/dev/null"]
    output, native = (_session(debugger, path, tmp_path, *lines, plugin=plugin) for plugin in (True, False))
    assert len(_blocks(output)) == RECURSION.functions.count("descend")
    seen, expected = (re.findall(r"^(?:seen|stopped) (\w+)$", text, flags=re.MULTILINE) for text in (output, native))
    assert seen == expected
