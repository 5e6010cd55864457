"""Frames after a function that only SFrame describes, in a program that LLDB otherwise unwinds correctly.

LLDB's output is compared with that for the same code built with CFI, without the plugin's frames.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.lldb.beside_programs import program
from tests.lldb.driver import answers
from tests.pairing import paired

EXPRESSIONS = (
    *("expression -- 1 + 2", "expression -- start", "expression -- this->start + 1", "p start", "frame variable this"),
    *("frame variable this->start", "frame variable *this", "p *this", "expression -- sizeof(*this)"),
)
"""Expressions in a frame of a method."""
OTHERS = (
    *("frame variable", "frame variable no_such_thing", "expression -- no_such_thing", "expression -- local"),
    *("image lookup --address main", "image lookup --address $pc", "image lookup --address main"),
    *("memory read --count 1 -- $sp", "watchpoint set variable local", "watchpoint delete --force", "frame diagnose"),
    *("expression --top-level -- int one() { return 1; }", "expression -- [=] { return start; }()", "dwim-print this"),
    *("frame recognizer info 1", "register read", "register read rbx", "frame info", "disassemble --count 2"),
)
"""Commands that need registers or variables, in a frame that has few or none."""
PLACES = ("method", "lambda", "recursion")


def run(lldb: str, described: dict[str, Any], *commands: str) -> list[tuple[bool, str, str]]:
    """Return the answers of LLDB; the numbers of results are not compared."""
    return answers(lldb, described, commands, varying=r"(?<=\$)\d+")


@pytest.mark.usefixtures("fixed_addresses")
def test_values_in_methods(lldb: str) -> None:
    commands = ["sframe mode off", "frame select 2", *EXPRESSIONS, "bt 3"]
    expected = run(lldb, program("-O0", cfi=True), *commands)
    commands[0] = "sframe strict on"
    shown = run(lldb, program("-O0"), *commands)
    assert "[synthetic]" in shown[-1][1]
    assert "method(" in shown[1][1]
    assert "(int) $N = 7" in shown[3][1]
    for command, ours, native in paired(EXPRESSIONS, shown[2:-1], expected[2:-1]):
        assert ours == native, command


@pytest.mark.parametrize("setting", ["mode always", "strict on"])
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_commands_that_need_what_the_frame_has_not(lldb: str, level: str, setting: str) -> None:
    """None of them crashes LLDB, or makes it wait for itself."""
    # The first one makes LLDB ask for variables while it parses options, when the frame does not have them yet.
    every = ("image lookup --address main", *EXPRESSIONS, *OTHERS)
    commands = [f"sframe {setting}"]
    for _ in PLACES:
        for frame in (1, 2, 3):
            commands += [f"frame select {frame}", *every]
        commands += ["bt", "continue"]
    said = run(lldb, program(level), *commands)
    shown = "".join(output for _, output, _ in said)
    assert shown.count("[synthetic]") >= len(PLACES)
    assert all(f"{name}" in shown for name in PLACES)
    sums = [output for command, (_, output, _) in zip(commands, said) if command == "expression -- 1 + 2"]
    assert sums == ["(int) $N = 3\n"] * len(sums)
    assert len(sums) == 9


@pytest.mark.usefixtures("fixed_addresses")
def test_item_38_finish_ends_where_it_was_called_from_and_frames_have_their_numbers(lldb: str) -> None:
    def stops(described: dict[str, Any], mode: str) -> list[list[str]]:
        commands = [f"sframe mode {mode}", "breakpoint disable", "frame variable", "bt"]
        for _ in range(4):
            commands += ["finish", "frame variable", "bt", "up", "down"]
        said = run(lldb, described, *commands)[1:]
        assert all(succeeded for succeeded, _, _ in said)
        # Number, pc and function of each frame.
        return [re.findall(r"frame #(\d+: 0x[0-9a-f]+ \S+?)\(", output) for _, output, _ in said]

    expected = stops(program("-O0", cfi=True, place="again"), "off")
    assert stops(program("-O0", place="again"), "always") == expected
