"""Names of files and functions that are not valid text in the locale of GDB, which is ``C`` here."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.gdb import driver
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


def test_names_where_files_have_names_in_ascii(debugger: Debugger, tmp_path: Path) -> None:
    """In the locale ``C``, GDB's Python 3.14 does not take names of files for UTF-8; older ones can be told so."""
    executable = _program(tmp_path, "Latin-1")
    arguments = [part for command in (*STOPPED, "sframe bt") for part in ("-ex", command)]
    environment = {**driver.environment(), "PYTHONUTF8": "0"}
    shown = driver.run(driver.command_line(debugger, "-batch", *arguments, str(executable)), environment)
    assert re.findall(r"^#\d  0x\w+  (\S+) +\(.*\)  +sframe$", shown, re.MULTILINE) == STACK


def _program(parent: Path, folder: str) -> Path:
    path = parent / os.fsdecode(FOLDERS[folder])
    path.mkdir()
    return compiled("umlauts.c", path, "-g")
