"""Every command and program of the README and the guides, in the tests' environment.

``tests/packaging`` runs them as installed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sframe_unwind.cli import COMMANDS
from tests.lldb.debuggers import find_own
from tests.lldb.driver import environment as lldb_environment
from tests.readme.commands import (
    CHECKOUT,
    SECONDS,
    blocks,
    environment,
    first_missing,
    prepare,
    run_command,
    shell_commands,
)

PROGRAMS = Path(sys.executable).parent
EXPECTED = {
    "sframe-unwind verify ./program libshared.so": "program: ",
    "sframe-unwind lookup ./program main+4": "main+0x4\n",
    "sframe-unwind lookup ./program - < addresses.txt": "main+0x0: CFA rsp+8".replace("rsp", "sp"),
    "sframe-unwind backtrace --core core": "inner",
    "sframe-unwind backtrace --pid 1234": "outer",
    "sframe-unwind verify ./plt": "cfa: SFrame rsp + 16; DWARF rsp + 8",
}
"""Text that some of them print."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("readme")
    prepare(made)
    return made


def test_every_shell_command(folder: Path) -> None:
    with environment(folder, PROGRAMS) as env:
        for block in blocks():
            if block.language != "sh":
                continue
            printed = ""
            for line in block.lines:
                printed += (answer := run_command(line, folder, env))
                assert EXPECTED.get(line, "") in answer, line
            assert first_missing(block.output, printed) is None, printed
    assert set(EXPECTED) <= set(shell_commands())
    assert sum(bool(block.output) for block in blocks()) >= 5
    assert (folder / ".gdbinit").read_text(encoding="utf-8").startswith("source ")
    assert (folder / "report.html").stat().st_size > 1000


def test_every_command_of_gdb(folder: Path) -> None:
    sessions = [block for block in blocks() if block.language == "gdb"]
    assert len(sessions) == 2
    assert sessions[0].output
    with environment(folder, PROGRAMS) as env:
        for session in sessions:
            typed = [part for line in session.lines for part in ("-ex", line)]
            command = ["sframe-unwind", "gdb", "-batch", *typed, "./program"]
            done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=SECONDS)
            assert re.search(r"^#2 .* in main ", done.stdout, re.MULTILINE), done.stdout + done.stderr
            assert re.search(r"^[0-9]+ frames agree", done.stdout, re.MULTILINE), done.stdout
            assert "Undefined" not in done.stderr
            assert first_missing(session.output, done.stdout) is None, done.stdout


@pytest.mark.parametrize(
    ("shown", "missing"),
    [
        (["a 0x10", "b 2"], None),
        (["a 0x10", "c"], "c"),
        (["a 0x10", "...", "c"], None),
        (["c", "...", "a 0x10"], "a 0x10"),
        (["x"], "x"),
    ],
)
def test_a_line_that_is_not_printed_is_found(shown: list[str], missing: str | None) -> None:
    assert first_missing(shown, "first\na 0x7f\nb 33\nc\n") == missing


def test_the_first_session_in_lldb(folder: Path) -> None:
    """There is one list of commands for both debuggers."""
    lldb, (lines, *_) = find_own(), [block.lines for block in blocks() if block.language == "gdb"]
    typed = [part for line in lines for part in ("-o", line)]
    command = [sys.executable, "-m", "sframe_unwind", "lldb", "--no-lldbinit", "--batch", *typed, "./program"]
    env = lldb_environment(lldb, SFRAME_UNWIND_LLDB=lldb, PYTHONPATH=str(CHECKOUT))
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=SECONDS, check=True)
    assert re.search(r"^ *frame #2: .*`main", done.stdout, re.MULTILINE), done.stdout + done.stderr
    assert re.search(r"^[0-9]+ frames agree", done.stdout, re.MULTILINE), done.stdout
    assert "error:" not in done.stdout + done.stderr


def test_every_program(folder: Path) -> None:
    (program,) = ("\n".join(block.lines) for block in blocks() if block.language == "python")
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=True
    )
    assert re.search(r"^0x[0-9a-f]+ \(0, UnwindRule\(", done.stdout, re.MULTILINE), done.stdout


def test_every_command_of_the_table_is_one() -> None:
    text = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`sframe-unwind (\w+)", text))
    assert named <= set(COMMANDS)
    assert named | {"gdb", "lldb", "plugin"} == set(COMMANDS)
