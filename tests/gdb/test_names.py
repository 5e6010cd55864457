"""Names of files and functions that are not valid text in the locale of GDB, which is ``C`` here."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.gdb.compiling import compiled
from tests.gdb.driver import Debugger, batch

FOLDERS = {"ASCII": b"plain", "UTF-8": "Größe".encode(), "Latin-1": b"Gr\xf6\xdfe"}
STOPPED = ("break größe", "run", "bt")
STACK = ["größe", "naïve", "main"]


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.usefixtures("fixed_addresses")
def test_stacks_are_those_without_the_plugin(folder: str, debugger: Debugger, tmp_path: Path) -> None:
    executable = _program(tmp_path, folder)
    alone = batch(debugger, *STOPPED, "finish", "bt", executable=executable, plugin=None)
    assert alone.count("größe (") > 1
    assert batch(debugger, *STOPPED, "finish", "bt", executable=executable) == alone


@pytest.mark.parametrize("folder", FOLDERS)
def test_commands_show_stacks(folder: str, debugger: Debugger, tmp_path: Path) -> None:
    shown = batch(
        debugger, *STOPPED, "sframe bt", "sframe compare", "sframe explain", executable=_program(tmp_path, folder)
    )
    assert re.findall(r"^#\d  0x\w+  (\S+) +\(.*\)  +sframe$", shown, re.MULTILINE) == STACK
    assert "3 frames agree" in shown
    assert " <größe" in shown


def _program(parent: Path, folder: str) -> Path:
    path = parent / os.fsdecode(FOLDERS[folder])
    path.mkdir()
    return compiled("umlauts.c", path, "-g")
