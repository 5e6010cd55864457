"""Truncated, corrupt or foreign sections are reported in one line, and backtraces are as without the plugin."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.expectations import STOPS
from tests.gdb.damage import CHANGES, damaged
from tests.gdb.driver import Debugger, call
from tests.gdb.programs import built, program
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
    answers = call(debugger, "reports.collect", programs=programs)
    for (name, (_, said)), described, answer in paired(CHANGES.items(), programs, answers):
        lines = [line for text in answer["output"] for line in text.splitlines() if "sframe: " in line]
        assert len(lines) == 1, (name, lines)
        assert lines[0].startswith(f"sframe: {described['executable']}: SFrame data not used: "), name
        assert re.search(said, lines[0]), (name, lines)
        native = answer["shown"]["off"][0]
        for texts in answer["shown"].values():
            # The line appears with the first backtrace that needs the section.
            for text in texts:
                shown = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("sframe: "))
                assert shown == native, name
        status, _, compared, explained = answer["sframe"]
        assert CALLBACK.sample in status, name
        assert " frames agree" in compared.splitlines()[-1], name
        assert "not usable: " in explained, (name, explained)
