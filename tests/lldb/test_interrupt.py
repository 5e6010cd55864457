"""Ctrl-C in the middle of a long backtrace.  LLDB may still show the whole backtrace."""

from __future__ import annotations

import pytest

from tests.lldb.debuggers import PROVIDING, find
from tests.lldb.driver import IMPORT
from tests.lldb.terminal import terminal
from tests.samples.build import build

DEPTH = 20_000


@pytest.mark.parametrize("name", PROVIDING)
def test_the_session_goes_on(name: str) -> None:
    with terminal(find(name), "-O", IMPORT, str(build("recursion"))) as session:
        session.run("breakpoint set -n sample_stop")
        session.launch(str(DEPTH))
        for command, seen in (("bt", "frame #40"), ("bt", "frame #400"), ("sframe bt", ""), ("sframe compare", "")):
            session.interrupted(command, seen)
        shown = session.run("bt 3")
        assert "`sample_stop" in shown
        assert "`descend" in shown
        assert "mode auto" in session.run("sframe mode")
