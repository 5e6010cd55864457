"""Completion in real shells, and the manual page in `man`."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pexpect
import pytest

from sframe_unwind.cli import COMMANDS
from sframe_unwind.cli.debugger import GDB, LLDB
from sframe_unwind.cli.status import STATUSES
from sframe_unwind.internal_error import TRACEBACK
from sframe_unwind.process.debuginfod import CACHE, MAX_SIZE, SERVERS, TIMEOUT
from tests.hanging import HANG
from tests.missing import absent
from tests.terminals import close
from tools.shell_files import MANUAL, PLACES, write

BASH = """
source {script}
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_LINE="{words}"; COMP_POINT=${{#COMP_LINE}}
compopt() {{ :; }}
complete_function=$(complete -p sframe-unwind | sed 's/.*-F \\([^ ]*\\).*/\\1/')
$complete_function sframe-unwind "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD-1]}}"
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
FISH = "source {script}; complete -C '{words}'"
ZSH = """PS1=; fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -D; \
typed() {{ zle -I; print -r -- "<$BUFFER>" }}; zle -N typed; bindkey '^Xt' typed; print rea''dy"""
PRINT_TYPED = "\x18t"
"""The keys that make zsh print the line that is typed."""
CASES = [("", list(COMMANDS)), ("lo", ["lookup"]), ("verify --aga", ["--against"]), ("plugin l", ["lldb"])]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("shells")
    write(made)
    return made


def offered(shell: str, program: str) -> str:
    """Return the completions that a shell prints."""
    if shutil.which(shell) is None:
        absent(f"{shell} is not installed: its completion stays untested")
    command = [shell, "--norc" if shell == "bash" else "--no-config", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False)
    assert done.stderr == "", done.stderr
    return done.stdout


@pytest.mark.parametrize(("words", "expected"), CASES, ids=lambda value: value if isinstance(value, str) else "")
def test_bash(folder: Path, words: str, expected: list[str]) -> None:
    typed = f"sframe-unwind {words}" if words else "sframe-unwind ''"
    found = offered("bash", BASH.format(script=folder / PLACES["bash"], words=typed)).split()
    assert [one for one in found if not one.startswith("-") or words] == expected


@pytest.mark.parametrize(("words", "expected"), CASES, ids=lambda value: value if isinstance(value, str) else "")
def test_fish(folder: Path, words: str, expected: list[str]) -> None:
    lines = offered("fish", FISH.format(script=folder / PLACES["fish"], words=f"sframe-unwind {words}")).splitlines()
    assert sorted(line.partition("\t")[0] for line in lines) == sorted(expected)


@pytest.mark.parametrize(("words", "expected"), CASES[1:], ids=lambda value: value if isinstance(value, str) else "")
def test_zsh(folder: Path, words: str, expected: list[str]) -> None:
    """zsh completes only at a terminal.

    The line that it shows there can have control sequences in the middle: that depends on when zsh reads the keys.
    """
    if shutil.which("zsh") is None:
        absent("zsh is not installed: its completion stays untested")
    shell = pexpect.spawn("zsh", ["-f", "-i"], timeout=HANG, encoding="utf-8", dimensions=(40, 200))
    try:
        shell.sendline(ZSH.format(folder=(folder / PLACES["zsh"]).parent))
        shell.expect_exact("ready\r\n")
        shell.send(f"sframe-unwind {words}\t{PRINT_TYPED}")
        shell.expect_exact(f"<sframe-unwind {words}{expected[0].removeprefix(words.split()[-1])} >\r\n")
    finally:
        close(shell)


def test_files_are_completed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "program").touch()
    program = BASH.format(script=folder / PLACES["bash"], words=f"sframe-unwind dump {tmp_path}/pro")
    assert offered("bash", program).split() == [f"{tmp_path}/program"]


def test_manual_page_has_no_warnings(folder: Path) -> None:
    if shutil.which("man") is None or shutil.which("groff") is None:
        absent("man or groff is not installed: the manual page stays untested")
    command = ["man", "--warnings", "-Tutf8", "-l", str(folder / MANUAL)]
    # Newer versions of groff otherwise write escape sequences, which `col` does not remove.
    environment = {"PATH": "/usr/bin:/bin", "GROFF_NO_SGR": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=True, env=environment)
    assert done.stderr == ""
    plain = subprocess.run(["col", "-bx"], input=done.stdout, capture_output=True, text=True, check=True).stdout
    for name, module in COMMANDS.items():
        assert f"sframe-unwind {name}" in plain
        assert module.EXAMPLES.split("\n")[0].strip() in plain
    sections = re.findall(r"^([A-Z][A-Z ]+)$", plain, re.MULTILINE)
    assert {"EXIT STATUS", "ENVIRONMENT", "SEE ALSO"} <= set(sections)
    statuses = plain.partition("\nEXIT STATUS\n")[2].partition("\nENVIRONMENT\n")[0]
    assert [int(status) for status in re.findall(r"^ +(\d+) ", statuses, re.MULTILINE)] == list(STATUSES)
    read = {SERVERS, CACHE, TIMEOUT, MAX_SIZE, TRACEBACK, GDB.variable, LLDB.variable}
    assert read <= set(re.findall(r"\w+", plain.partition("\nENVIRONMENT\n")[2]))
