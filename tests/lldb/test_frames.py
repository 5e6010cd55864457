"""Typical use of frames in LLDB: showing them, going up and down, stepping, finishing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.expectations import SFRAME_ONLY_STRIPPED, STOPS, STRIPPED_DEPTH
from tests.gdb.damage import CHANGES, damaged
from tests.lldb.driver import agrees, answers, call
from tests.lldb.programs import program
from tests.pairing import paired
from tests.samples.build import build

BY_NAME = {stop.name: stop for stop in STOPS}
NAVIGATION = (
    *("up", "frame variable", "register read", "expression -- level + 1", "up 2", "down", "frame select 3"),
    *("frame info", "frame variable level", "frame select 0", "bt 3", "thread backtrace all"),
    *("finish", "bt", "up", "next", "bt", "step", "bt"),
)


def run(lldb: str, described: dict[str, Any], *commands: str) -> list[tuple[bool, str, str]]:
    """Return the answers of LLDB; the number of the process is not compared."""
    return answers(lldb, described, commands, varying=r"(?<=Process )\d+")


@pytest.mark.parametrize("variant", ["O0", "O2"])
@pytest.mark.usefixtures("fixed_addresses")
def test_frames_that_agree_are_lldbs_own(lldb: str, variant: str) -> None:
    described = program(BY_NAME["recursion"], variant=variant)
    ours, native = (run(lldb, described, f"sframe mode {mode}", *NAVIGATION)[1:] for mode in ("always", "off"))
    for command, shown, expected in paired(NAVIGATION, ours, native):
        assert shown == expected, command
    said = dict(zip(NAVIGATION, ours))
    assert all(succeeded for succeeded, _, _ in (said["finish"], said["step"], said["frame variable"]))
    assert "rsp = " in said["register read"][1]
    if variant == "O0":
        assert "(int) level = " in said["frame variable level"][1]
        assert "(int) $0 = " in said["expression -- level + 1"][1]


def test_selected_frame_stays_selected(lldb: str) -> None:
    commands = ("frame select 2", "sframe mode off", "frame info", "sframe mode always", "frame info", "sframe explain")
    select, _, off, _, always, explained = run(lldb, program(BY_NAME["leaf"]), *commands)
    assert "outer(" in off[1]
    assert off == always
    assert "outer (leaf.c:" in explained[1].splitlines()[0]
    assert select[1].startswith(off[1].rstrip())


def test_frames_that_lldb_does_not_have(lldb: str) -> None:
    outermost = f"frame select {STRIPPED_DEPTH - 1}"
    commands = ("bt", outermost, "frame variable", "expression -- 1", "down", "up", "step", "bt")
    backtrace, select, _, _, down, up, _, stepped = run(lldb, program(SFRAME_ONLY_STRIPPED), *commands)
    assert f"frame #{STRIPPED_DEPTH - 1}: " in backtrace[1]
    assert "[synthetic]" in backtrace[1]
    assert select[0]
    assert f"frame #{STRIPPED_DEPTH - 2}: " in down[1]
    assert up == select
    assert f"frame #{STRIPPED_DEPTH - 2}: " in stepped[1]


def test_damaged_sections(lldb: str, tmp_path: Path) -> None:
    stop = BY_NAME["callback"]
    original = build(stop.sample)
    programs = []
    for number, (change, _) in enumerate(CHANGES.values()):
        folder = tmp_path / str(number)
        folder.mkdir()
        programs.append({**program(stop), "executable": str(damaged(original, change, folder))})
    for name, (answer,) in paired(CHANGES, call(lldb, "backtraces", "collect", programs=programs)):
        assert answer["always"] == answer["off"], name
        assert agrees(answer["verdict"]), name
        assert {frame["unwinder"] for frame in answer["compare"]["threads"][0]["frames"]} <= {"lldb", "dwarf"}, name
        assert stop.sample in answer["status"], name
        assert "not usable: " in answer["explain"][1], name
