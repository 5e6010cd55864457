"""Code and rules that no compiler wrote do not end the check with an exception."""

from __future__ import annotations

import random
import time

import pytest

from sframe_unwind.code.lifting import Lifter
from sframe_unwind.code.machines import MACHINES
from tests.code.hostile import check

COUNT = 100
"""Number of inputs for each machine; `python -m tests.code.hostile` runs 100,000."""


@pytest.mark.parametrize("name", MACHINES)
def test_checking_ends(name: str) -> None:
    lifter = Lifter(MACHINES[name])
    for number in range(COUNT):
        random_ = random.Random(f"{name} {number}")
        check(random_, lifter, random_.choice((1, 7, 40, 80, 200)))


@pytest.mark.parametrize("name", MACHINES)
def test_time_is_bounded(name: str) -> None:
    """A function of 64 KiB, in which jumps lead everywhere, takes no more than some microseconds a byte."""
    started = time.process_time()
    check(random.Random(name), Lifter(MACHINES[name]), 1 << 16)
    assert time.process_time() - started < 60


def test_a_stack_that_ends_far_above_its_entry() -> None:
    """A function whose end shows gigabytes of pushed bytes at its entry is given up."""
    number, lifters = 343254, [Lifter(machine) for machine in MACHINES.values()]
    random_ = random.Random(number)
    started = time.process_time()
    check(random_, lifters[number % len(lifters)], random_.choice((1, 7, 40, 40, 80, 200)))
    assert time.process_time() - started < 5
