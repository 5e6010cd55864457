"""Functions that a signal interrupted while the frame pointer was their caller's."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from lab.drive import cutting
from tests.hanging import HANG
from tests.lldb.debuggers import PROVIDING, find
from tests.lldb.driver import IMPORT, batch
from tests.missing import toolchain_needed
from tests.samples.build import toolchain

_SOURCE = Path(__file__).with_name("interrupted.c")


@pytest.fixture(scope="module")
def executable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the program; one of its functions, which never runs, has no CFI."""
    made: Path = tmp_path_factory.mktemp("interrupted") / "interrupted"
    with toolchain_needed():
        tools = toolchain("amd64", 3)
    flags = ("-g", "-O1", "-fno-omit-frame-pointer", "-Wa,--gsframe", f"-B{tools}/")
    subprocess.run(["gcc", *flags, str(_SOURCE), "-o", str(made)], check=True, timeout=HANG)
    cutting.without_cfi(made, {next(one.start for one in cutting.functions(made) if one.name == "other")})
    return made


def _stack(lldb: str, executable: Path, mode: str) -> list[str]:
    """Return the program's functions that LLDB shows in the signal's handler."""
    stop = ("process handle SIGILL -s false -n false -p true", "breakpoint set -n note", "process launch -o /dev/null")
    commands = (IMPORT, f"sframe mode {mode}", *stop, "thread backtrace")
    said = batch(find(lldb), *(part for line in commands for part in ("-o", line)), str(executable))
    shown = said.rpartition("thread backtrace")[2]
    return re.findall(r"frame #\d+: 0x[0-9a-f]+ interrupted`(\w+)", shown)


@pytest.mark.parametrize("lldb", PROVIDING)
def test_the_caller_of_a_function_that_was_interrupted_in_its_epilogue(lldb: str, executable: Path) -> None:
    """The program's code determines the stack; LLDB alone leaves one caller out."""
    expected = ["note", "handler", "leaving", "caller", "caller", "main", "_start"]
    native = _stack(lldb, executable, "off")
    assert native == [*expected[:3], *expected[4:]]
    assert _stack(lldb, executable, "always") == expected
