"""Truncated, corrupt or foreign sections are reported in one line, and backtraces are as without the plugin."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.expectations import STOPS
from tests.gdb.damage import CHANGES, damaged
from tests.gdb.driver import Debugger, call_and_output
from tests.gdb.programs import built, program
from tests.gdb.typed import typed
from tests.pairing import paired

ABI = "amd64"
CALLBACK = next(stop for stop in STOPS if stop.sample == "callback")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_one_line_and_the_native_backtrace(debugger: Debugger, version: int, tmp_path: Path) -> None:
    original = built(CALLBACK.sample, ABI, version)
    programs = []
    for number, (change, _) in enumerate(CHANGES.values()):
        folder = tmp_path / str(number)
        folder.mkdir()
        programs.append(program(CALLBACK, damaged(original, change, folder), ABI))
    answers, printed = call_and_output(debugger, "reports.collect", programs=programs)
    for (name, (_, said)), described, answer in paired(CHANGES.items(), programs, answers):
        # In batch mode, the line is printed when GDB ends.
        lines = [line for line in printed.splitlines() if line.startswith(f"sframe: {described['executable']}: ")]
        assert len(lines) == 1, (name, printed)
        assert lines[0].startswith(f"sframe: {described['executable']}: SFrame data not used: "), name
        assert re.search(said, lines[0]), (name, lines)
        native = answer["shown"]["off"][0]
        for texts in answer["shown"].values():
            assert set(texts) == {native}, name
        status, _, compared, explained = answer["sframe"]
        assert CALLBACK.sample in status, name
        assert " frames agree" in compared.splitlines()[-1], name
        assert "not usable: " in explained, (name, explained)


@pytest.mark.usefixtures("fixed_addresses")
def test_the_line_is_a_line_of_its_own_without_a_terminal(debugger: Debugger, tmp_path: Path) -> None:
    """Commands come from a pipe: the line follows GDB's prompt, and is not within a line of GDB's."""
    change, _ = next(iter(CHANGES.values()))
    executable = damaged(built(CALLBACK.sample, ABI, 3), change, tmp_path)
    lines = (f"break {CALLBACK.place}", "run", "bt 2")
    shown = typed(debugger, executable, lines, more=("-iex", "set sframe mode always"))
    (line,) = [line for line in shown.splitlines() if "SFrame data not used" in line]
    assert line.startswith("sframe: ")
    assert shown.replace(f"{line}\n", "") == typed(debugger, executable, lines, plugin=False)
