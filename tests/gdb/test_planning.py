"""The treatment of the frames of a pc is decided once for each combination of settings."""

from __future__ import annotations

from tests.expectations import STOPS
from tests.gdb.driver import Debugger, call
from tests.gdb.programs import built, program


def test_plans_outlive_a_change_of_the_settings(debugger: Debugger) -> None:
    """`sframe compare` uses its own settings; after it, frames of the same pcs need no new plan."""
    stop = next(stop for stop in STOPS if stop.sample == "callback")
    described = program(stop, built(stop.sample, "amd64", 3, "O2"), "amd64")
    rounds = call(debugger, "planning.count", program=described)
    assert len(rounds["first"]["made"]) > len(stop.functions)
    assert set(rounds["first"]["made"].values()) == {1}
    assert rounds["again"] == {"made": {}, "texts": rounds["first"]["texts"]}
