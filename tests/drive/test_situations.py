"""Scripted sessions go the same way with and without the plugin."""

from __future__ import annotations

import pytest

from lab.drive import situations
from lab.drive.debuggers import DEBUGGERS, MODES, STRICT
from lab.drive.situations import SITUATIONS
from sframe_unwind.machine.gdb import CALLS
from tests.gdb import driver as gdb
from tests.missing import gdb_needed, toolchain_needed

TRIES = 3
"""Number of attempts for a session that does not always go the same way without the plugin."""
OLDER = {
    "gdb13": ("fork-both", "vfork-child", "exec", "checkpoint", "locked", "libraries", "two-machines"),
    "lldb22": ("fork-child", "exec", "handlers", "libraries"),
}
"""Situations for the older debuggers: GDB 13 alone takes 3 to 7 s for a program with so many signals."""
CALLING = ("checkpoint",)
"""Situations in which GDB calls functions of the program: it makes a checkpoint by a call of ``fork``."""
CASES = [
    (debugger, name)
    for name, situation in SITUATIONS.items()
    for debugger in DEBUGGERS
    if name in OLDER.get(debugger, SITUATIONS) and (situation.gdb if DEBUGGERS[debugger].is_gdb else situation.lldb)
]


@pytest.mark.parametrize(("debugger", "name"), CASES)
@pytest.mark.usefixtures("fixed_addresses")
def test_a_session_goes_as_it_does_without_the_plugin(debugger: str, name: str) -> None:
    chosen = DEBUGGERS[debugger]
    if name in CALLING:
        found = gdb.find(chosen.key)
        gdb_needed(found.path if found else "gdb", CALLS)
    # A frame of a script has no stack pointer in LLDB 22 and 23, and in mode `strict`, all frames are of this kind.
    modes = (*MODES[1:], *([STRICT] if chosen.is_gdb else []))
    for _ in range(TRIES):
        with toolchain_needed():
            outcome = situations.run(name, chosen, modes)
        assert not outcome.failures, outcome.failures
        if not outcome.dropped:
            assert outcome.commands >= 10
            return
    raise AssertionError(f"it is not the same each time without the plugin: {outcome.dropped}")
