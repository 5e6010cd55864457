"""The commands print numbers with the word for so many."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sframe_unwind.cli import main
from sframe_unwind.errors import counted
from tests.elf.objects import run, tools_for

_SOURCE = """
.text
.globl f
.type f, @function
f:
.cfi_startproc
ret
.cfi_endproc
.size f, 1
"""
"""A function of one instruction, which has one byte."""
_COMMANDS = {
    "lookup": (["lookup", "{}", "f"], r", 1 byte\b"),
    "verify": (["verify", "{}"], r": 1 function in both, .*; 1 address compared, no disagreements\n"),
    "code": (["verify", "--against", "code", "{}"], r": code of 1 function, 1 instruction: "),
    "convert": (
        ["convert", "--from", "dwarf", "{}", "-o", "{}.out"],
        r": 1 of 1 function, 1 byte of code; (?s:.)* at each of 1 address\n",
    ),
}


@pytest.mark.parametrize(
    ("number", "words", "text"),
    [
        (1, ("row",), "1 row"),
        (0, ("row",), "0 rows"),
        (-1, ("row",), "-1 rows"),
        (2, ("address",), "2 addresses"),
        (2, ("entry",), "2 entries"),
        (1, ("frame was", "frames were"), "1 frame was"),
        (3, ("frame was", "frames were"), "3 frames were"),
        (1234, ("stack ends", "stacks end", ","), "1,234 stacks end"),
    ],
)
def test_the_word_for_a_number(number: int, words: tuple[str, ...], text: str) -> None:
    assert counted(number, *words) == text


@pytest.mark.parametrize("command", list(_COMMANDS))
def test_one_of_each(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    source, file, linked = tmp_path / "f.s", tmp_path / "f.o", tmp_path / "f"
    tools, (arguments, expected) = tools_for("amd64", 3), _COMMANDS[command]
    source.write_text(_SOURCE, encoding="ascii")
    run(tools / "as", "--gsframe", source, "-o", file)
    run(tools / "ld", "-e", "f", file, "-o", linked)
    assert main([argument.format(linked) for argument in arguments]) == 0
    assert re.search(expected, capsys.readouterr().out)
