"""Differences from GDB alone that every plugin in Python makes, or that no plugin can avoid."""

from __future__ import annotations

import pytest

from tests.gdb.driver import PLUGIN, Debugger, batch
from tests.gdb.programs import built

LISTENER = "python gdb.events.stop.connect(lambda event: None)"


@pytest.mark.parametrize("level", [1, 2, 3])
@pytest.mark.usefixtures("fixed_addresses")
def test_item_41_annotations_are_those_with_any_listener(level: int, debugger: Debugger) -> None:
    executable = built("recursion", "amd64", 3)
    stops = (f"set annotate {level}", "break sample_stop", "run", "bt", "finish", "step")
    other = batch(debugger, LISTENER, *stops, executable=executable, plugin=None)
    assert "frame-begin" in other or level == 1
    assert batch(debugger, *stops, executable=executable) == other
    alone = batch(debugger, *stops, executable=executable, plugin=None)
    assert batch(debugger, "set sframe mode off", *stops, executable=executable) == alone


@pytest.mark.usefixtures("fixed_addresses")
def test_item_41_return_has_a_hook(debugger: Debugger) -> None:
    executable = built("recursion", "amd64", 3)
    commands = ("break sample_stop", "run", "set trace-commands on", "return", "bt", "set trace-commands off", "next")
    alone, shown = (batch(debugger, *commands, executable=executable, plugin=plugin) for plugin in (None, PLUGIN))
    hook = "++maintenance check-sframe-return"
    assert [line for line in shown.splitlines() if line != hook] == alone.splitlines()
    assert shown.splitlines().count(hook) == 1
