"""`step` into inlined functions: the backtraces equal those without the plugin, and GDB does not crash."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.gdb.compiling import compiled
from tests.gdb.driver import PLUGIN, Debugger, command_line, run
from tests.gdb.stacks import without_arguments

STEPS = 30
SCRIPT = ["break tail", "break last", "run >/dev/null", *["bt", "step"] * STEPS, "kill"]


def _stepped(debugger: Debugger, executable: Path, mode: str | None) -> str:
    first = [f"set sframe mode {mode}"] if mode else []
    arguments = [part for command in (*first, *SCRIPT) for part in ("-ex", command)]
    plugin = PLUGIN if mode else None
    output = run(command_line(debugger, "-batch", *arguments, str(executable), plugin=plugin))
    lines = [line for line in output.splitlines() if re.match(r"#\d+ ", line)]
    return without_arguments("\n".join(lines))


@pytest.mark.parametrize("sframe", [True, False], ids=["with SFrame", "without"])
@pytest.mark.usefixtures("fixed_addresses")
def test_item_28_step_into_inlined_functions(debugger: Debugger, sframe: bool, tmp_path: Path) -> None:
    executable = compiled("inlined.c", tmp_path, sframe=sframe)
    expected = _stepped(debugger, executable, None)
    # Some stops are at two levels of inlined functions and after a tail call.
    assert re.search(r"#0 .*\binner\b.*\n#1 .*\bouter\b.*\n#2 .*\blast\b.*\n#3 .*\btail\b.*\n#4 .*\bmain\b", expected)
    for mode in ("always", "fallback", "off"):
        assert _stepped(debugger, executable, mode) == expected
