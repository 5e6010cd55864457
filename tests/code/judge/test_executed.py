"""Nothing is proved about planted functions that is wrong in QEMU; `python -m lab.code.executed` runs all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.code.executed.pairs import pairs
from lab.code.executed.verdicts import Verdicts
from lab.code.recipes import MACHINES
from tests.missing import toolchain_needed

_EVERY = 12
"""One pair of so many is executed, besides those that were once proved falsely, or falsely called wrong."""
_MOST_UNKNOWN = 0.17
"""Maximum share of unknown verdicts on instructions.  It grows with the pairs of which nothing can be known: those that
once had a false proof."""


@pytest.mark.parametrize("machine", MACHINES)
def test_there_are_enough(machine: str) -> None:
    assert len(pairs(machine)) >= 200


@pytest.mark.parametrize("machine", MACHINES)
def test_what_is_proved_holds_where_it_is_executed(machine: str, tmp_path: Path) -> None:
    with toolchain_needed():
        verdicts = Verdicts(machine, tmp_path)
        chosen = [number for number, pair in enumerate(verdicts.pairs) if pair.is_mended or number % _EVERY == 0]
        results = list(verdicts.results(chosen))
    for result in results:
        title = f"{result.function.name}: {result.function.recipe.title}"
        assert result.is_planted, f"{title}: QEMU does not show what was planted"
        assert not result.proved_falsely, f"{title}: proved falsely at {list(map(hex, result.proved_falsely))}"
        assert not result.accused, f"{title}: accused at {list(map(hex, result.accused))}"
    unknown, instructions = verdicts.unknown
    assert unknown <= _MOST_UNKNOWN * instructions
