"""Code and rules that no compiler wrote do not end the check with an exception."""

from __future__ import annotations

import random

import pytest

from lab.code.hostile import check
from sframe_unwind.code.decode.lifting import Lifter
from sframe_unwind.code.decode.machines import MACHINES
from tests.work import at_most_lines

COUNT = 100
"""Number of inputs for each machine; `python -m lab.code.hostile` runs 100,000."""


@pytest.mark.parametrize("name", MACHINES)
def test_checking_ends(name: str) -> None:
    lifter = Lifter(MACHINES[name])
    for number in range(COUNT):
        random_ = random.Random(f"{name} {number}")
        check(random_, lifter, random_.choice((1, 7, 40, 80, 200)))


@pytest.mark.parametrize("name", MACHINES)
def test_work_is_bounded(name: str) -> None:
    """In a function of 4 KiB, in which jumps lead everywhere, each byte costs a limited number of lines."""
    size = 1 << 12
    with at_most_lines(2_000 * size):
        check(random.Random(name), Lifter(MACHINES[name]), size)


def test_a_stack_that_ends_far_above_its_entry() -> None:
    """A function whose end shows gigabytes of pushed bytes at its entry is given up."""
    number, lifters = 343254, [Lifter(machine) for machine in MACHINES.values()]
    random_ = random.Random(number)
    with at_most_lines(1_000_000):
        check(random_, lifters[number % len(lifters)], random_.choice((1, 7, 40, 40, 80, 200)))
