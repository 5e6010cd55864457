"""Stacks that continue on another one, at higher or lower addresses, as those of fibers and of OCaml do."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.gdb.compiling import tools_for
from tests.hanging import HANG
from tests.lldb.debuggers import PROVIDING, find
from tests.lldb.driver import IMPORT, batch

SOURCE = Path(__file__).parent / "other_stacks.c"
SWITCH = """
.globl on_stack
.type on_stack, @function
on_stack:
    .cfi_startproc
    {mark}
    push %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    mov %rsp, %rbp
    .cfi_def_cfa_register %rbp
    mov %rsi, %rsp
    call *%rdi
    mov %rbp, %rsp
    pop %rbp
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
.size on_stack, .-on_stack
.section .note.GNU-stack, "", @progbits
"""
"""A function that calls another one on another stack."""
MARKS = {"marked": ".cfi_signal_frame", "unmarked": ""}
"""Whether the CFI of that function marks it as a signal frame."""
FUNCTIONS = ["reached", "second", "on_stack", "first", "on_stack", "main"]
START = ("-o", "breakpoint set -n reached", "-o", "process launch -o /dev/null")


@pytest.fixture(scope="module", params=[(mark, has) for mark in MARKS for has in (True, False)], ids=str)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the program; the function that switches stacks has SFrame beside CFI, or CFI alone."""
    mark, has_sframe = request.param
    folder = tmp_path_factory.mktemp("stacks")
    (folder / "switch.s").write_text(SWITCH.format(mark=MARKS[mark]), encoding="utf-8")
    tools = f"-B{tools_for(3)}/"
    sframe = "-Wa,--gsframe"
    _gcc(tools, *([sframe] if has_sframe else []), "-c", folder / "switch.s", "-o", folder / "switch.o")
    _gcc(tools, sframe, "-g", "-O1", "-c", SOURCE, "-o", folder / "source.o")
    built: Path = folder / "program"
    _gcc(tools, folder / "source.o", folder / "switch.o", "-o", built)
    return built


def _gcc(*arguments: object) -> None:
    subprocess.run(["gcc", *map(str, arguments)], check=True, timeout=HANG)


@pytest.mark.parametrize("lldb", PROVIDING)
def test_the_stack_is_that_of_lldb_alone(lldb: str, program: Path) -> None:
    alone = batch(find(lldb), *START, "-o", "bt", str(program)).partition("(lldb) bt")[2]
    assert re.findall(r"`(\w+)", alone)[: len(FUNCTIONS)] == FUNCTIONS
    count = len(re.findall("frame #", alone))
    commands = ("-o", "sframe bt", "-o", "sframe compare", "-o", "sframe strict on", "-o", "bt")
    said = batch(find(lldb), "-O", IMPORT, *START, *commands, str(program))
    by_sframe, _, others = said.partition("(lldb) sframe bt")[2].partition("(lldb) sframe compare")
    compared, _, strict = others.partition("(lldb) sframe strict on")
    assert re.findall(r"^#\d+ +0x\w+ +(\w+)", by_sframe, re.MULTILINE)[: len(FUNCTIONS)] == FUNCTIONS
    assert len(re.findall(r"^#\d", by_sframe, re.MULTILINE)) == count
    assert "end: outermost frame" in by_sframe
    assert f"{count - 1} frames agree" in compared
    assert re.findall(r"`(\w+)", strict.partition("(lldb) bt")[2])[: len(FUNCTIONS)] == FUNCTIONS
