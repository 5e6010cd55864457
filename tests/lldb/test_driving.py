"""A program that is moved by commands stops at the same places as without the plugin, and LLDB does not hang."""

from __future__ import annotations

import pytest

from lab.lldb.driving import Step, drive
from tests.lldb.debuggers import PROVIDING, find

STEPS = 20


@pytest.mark.parametrize("lldb", PROVIDING)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.usefixtures("fixed_addresses")
def test_same_as_without_the_plugin(lldb: str, seed: int) -> None:
    path = find(lldb)
    without = drive(path, seed, "none", STEPS)
    assert len({step.frames for step in without}) > STEPS // 2
    for mode in ("off", "always"):
        _same(drive(path, seed, mode, STEPS), without, mode)


@pytest.mark.parametrize("lldb", PROVIDING)
@pytest.mark.parametrize("level", ["-O0"])
@pytest.mark.usefixtures("fixed_addresses")
def test_other_optimisation(lldb: str, level: str) -> None:
    path = find(lldb)
    _same(drive(path, 7, "always", STEPS, level), drive(path, 7, "none", STEPS, level), "always")


def _same(moved: list[Step], without: list[Step], mode: str) -> None:
    """Check the steps up to the first difference, after which later ones mean nothing."""
    for number, (step, expected) in enumerate(zip(moved, without)):
        assert step == expected, f"mode {mode}, step {number}"
    assert len(moved) == len(without)
