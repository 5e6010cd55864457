"""Source lines of object files, whose debug information refers to code and strings by relocations."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sframe_unwind.cli import main
from sframe_unwind.elf import opened
from sframe_unwind.source.debug_info import DebugInfo, Place
from tests.code.assembled import BINUTILS, TARGETS
from tests.hanging import HANG
from tests.missing import toolchain_needed
from tools.binutils import provide

SOURCE = """\
\t.text
\t.globl one
\t.type one, %function
one:
\tnop
second:
\tnop
\t.size one, .-one
\t.section .other, "ax", %progbits
\t.globl two
\t.type two, %function
two:
\tnop
\t.size two, .-two
"""


def assembled(machine: str, folder: Path) -> Path:
    (folder / "source.s").write_text(SOURCE)
    target, options = TARGETS[machine]
    with toolchain_needed():
        tools = provide(BINUTILS, target)
    command = [str(tools / "as"), *options, "-g", "-o", "made.o", "source.s"]
    subprocess.run(command, cwd=folder, check=True, timeout=HANG)
    return folder / "made.o"


@pytest.mark.parametrize("machine", TARGETS)
def test_places(machine: str, tmp_path: Path) -> None:
    made = assembled(machine, tmp_path)
    with opened(made) as binary:
        starts = {symbol.name: symbol.address for symbol in binary.symbols}
    info, file = DebugInfo(made), str(tmp_path / "source.s")
    assert info.places(starts["one"]) == [Place("one", file, 5)]
    assert info.places(starts["second"]) == [Place("one", file, 7)]
    assert info.places(starts["two"]) == [Place("two", file, 13)]
    assert info.places(starts["two"] + 64) == []


def test_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "--no-code", "--no-pager", str(assembled("amd64", tmp_path)), "two"]) == 0
    assert "source.s:13" in capsys.readouterr().out
