"""A separate debug file has the headers of its program's sections; the commands tell where the contents are."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from sframe_unwind.cli import main
from tests.elf.objects import run, tools_for
from tests.samples.build import build

_COMMANDS = {
    "dump": ["dump"],
    "lookup": ["lookup"],
    "lint": ["lint"],
    "verify": ["verify"],
    "code": ["verify", "--against", "code"],
    "convert": ["convert"],
    "from-dwarf": ["convert", "--from", "dwarf"],
    "debug-frame": ["convert", "--to", "debug_frame"],
}
_OF_BOTH = ("code", "from-dwarf", "convert")
"""Of these, the commands that would also read DWARF CFI."""


@pytest.mark.parametrize("name", list(_COMMANDS))
def test_contents_are_in_the_program(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    tools, file = tools_for("amd64", 3), tmp_path / "leaf.debug"
    run(tools / "objcopy", "--only-keep-debug", build("leaf"), file)
    notes = subprocess.check_output([tools / "readelf", "-n", build("leaf")], text=True)
    (build_id,) = re.findall(r"Build ID: ([0-9a-f]+)", notes)
    more = {"lookup": ["0x10"], "convert": ["-o", str(tmp_path / "out")]}.get(_COMMANDS[name][0], [])
    assert main([*_COMMANDS[name], str(file), *more]) == 2
    sections = ".eh_frame and .sframe have" if name in _OF_BOTH else ".sframe has"
    where = f"its program or library (build ID {build_id}) has them"
    assert capsys.readouterr() == (
        "",
        f"sframe-unwind: {file}: {sections} no contents in this separate debug file; {where}\n",
    )


def test_section_without_contents_in_another_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, file = tmp_path / "f.s", tmp_path / "f.o"
    source.write_text('.text\nret\n.section .sframe, "a", @nobits\n.zero 64\n', encoding="ascii")
    run(tools_for("amd64", 3) / "as", source, "-o", file)
    assert main(["dump", str(file)]) == 2
    assert capsys.readouterr() == ("", f"sframe-unwind: {file}: .sframe has no contents in this file (SHT_NOBITS)\n")
