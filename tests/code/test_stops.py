"""Stacks by the machine code at random stops in programs without unwind data; `lab.code.stops` has more."""

from __future__ import annotations

import pytest

from lab.code.stops.__main__ import study
from lab.code.stops.building import STRIPPED, Program
from tests.missing import fixed_addresses_needed, toolchain_needed

STOPS = 16
CASES = [
    *((debugger, "amd64") for debugger in ("gdb", "gdb-system", "lldb", "lldb-22")),
    *(("gdb", abi) for abi in ("aarch64", "s390x")),
    ("lldb", "aarch64"),
]


@pytest.mark.parametrize(("debugger", "abi"), CASES)
def test_frames_and_steps_are_those_with_cfi(debugger: str, abi: str) -> None:
    if abi == "amd64":  # an emulator gives each run the same addresses
        fixed_addresses_needed()
    lines: list[str] = []
    programs = [Program("indirect", "-O2")]
    if debugger == "gdb":
        programs.append(Program("handlers", "-O2", ("SIGUSR1",)))
    if abi != "aarch64":
        programs.append(Program("realign", "-O2"))
    with toolchain_needed():
        totals = study(programs, debugger, abi, STOPS, seed=1, alone=False, report=lines.append)
    for kind, count in totals.items():
        assert (count.wrong, count.missing, count.longer) == (0, 0, 0), lines
        # LLDB compares the CFA of its own innermost frame to tell whether a step has entered a function.
        assert count.moved_elsewhere == count.unnoticed, lines
        # LLDB does not complete a `finish` into a frame of the plugin that a breakpoint has interrupted.
        assert count.other_ways <= (kind == STRIPPED and debugger.startswith("lldb")), lines
        whole = len(programs) - count.other_ways  # LLDB may take a callee for the caller at any of the stops
        assert count.stops > STOPS * whole * 3 // 4, lines
        assert count.equal > 3 * count.stops


def test_the_debugger_alone_shows_other_frames() -> None:
    lines: list[str] = []
    with toolchain_needed():
        totals = study([Program("indirect", "-O2")], "gdb", "amd64", STOPS, seed=1, alone=True, report=lines.append)
    count = totals[STRIPPED]
    assert count.wrong + count.shorter > count.stops // 2, lines
