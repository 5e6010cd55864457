"""The plugins find and use the SFrame of a copy like that of a linker."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from lab.convert.stepping import prepare
from sframe_unwind.translation.compact import MAX_ROWS
from tests.abis.debuggers import DEBUGGERS, debugger
from tests.gdb.driver import batch
from tests.lldb import debuggers as lldbs
from tests.lldb.driver import IMPORT
from tests.lldb.driver import batch as lldb_batch


def check(shown: str) -> None:
    for name in ("through_libc", "libc.so.6"):
        assert re.search(rf"^{re.escape(name)} +0x[0-9a-f]+ +3 +amd64 ", shown, re.MULTILINE), shown
    frames = [line for line in shown.splitlines() if re.match(r"#\d+ ", line) and re.search(r" sframe( |$)", line)]
    assert any("by_value" in frame for frame in frames)
    assert any("main" in frame for frame in frames)
    # All of them by SFrame.
    assert re.search(r"^\d+ frames agree(; 1 outermost frame has no CFA)?$", shown, re.MULTILINE), shown


@pytest.fixture(scope="module", params=[None, MAX_ROWS])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Build the program and the C library with SFrame: one entry for each function, or for several functions."""
    return prepare("amd64", tmp_path_factory.mktemp("made"), max_rows=request.param)


@pytest.mark.parametrize("name", DEBUGGERS)
def test_gdb(name: str, made: dict[str, Any]) -> None:
    commands = (f"set environment LD_LIBRARY_PATH {made['library_path']}", "break by_value", "run")
    program = Path(made["program"]["executable"])
    check(batch(debugger(name, "amd64"), *commands, "sframe status", "sframe compare", executable=program))


@pytest.mark.parametrize("name", ["22.1", "newest"])
def test_lldb(name: str, made: dict[str, Any]) -> None:
    commands = (IMPORT, f"settings set target.env-vars LD_LIBRARY_PATH={made['library_path']}")
    asked = ("b by_value", "run", "sframe status", "sframe compare")
    arguments = [argument for command in (*commands, *asked) for argument in ("-o", command)]
    check(lldb_batch(lldbs.find(name), *arguments, made["program"]["executable"]))
