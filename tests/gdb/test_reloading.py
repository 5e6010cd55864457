"""A library that the program loads again and again, at the same address."""

from __future__ import annotations

import re
from pathlib import Path

from tests.gdb.compiling import compiled
from tests.gdb.driver import Debugger
from tests.gdb.typed import typed

_STOP = ("set sframe strict on", "break back", "commands", "silent", "bt 4", "end")
_COUNTED = (
    "python import sframe_unwind.image.elf_image as images; opened, load = [], images.Image.sframe_section",
    "python images.Image.sframe_section = lambda *rest: opened.append(rest) or load(*rest)",
)
_COUNT = "python print('opened', len(opened))"


def test_its_section_is_opened_once(debugger: Debugger, tmp_path: Path) -> None:
    executable = compiled("plugs.c", tmp_path)
    library = compiled("plug.c", tmp_path, "-shared", "-fPIC").rename(tmp_path / "plug.so")
    counts = []
    for times in (2, 6):
        lines = (*_COUNTED, *_STOP, "run", *["continue"] * (times - 1), _COUNT)
        output = typed(debugger, executable, lines, arguments=[str(library)] * times)
        assert _stacks(output) == [["back", "inner", "plug", "main"]] * times
        counts.append(int(output.partition("opened ")[2].split()[0]))
    assert counts[0] == counts[1] > 0


def test_another_library_with_its_path_is_read_anew(debugger: Debugger, tmp_path: Path) -> None:
    executable = compiled("plugs.c", tmp_path)
    flags = ("-shared", "-fPIC", "-fomit-frame-pointer", "-fno-stack-protector", "-Wl,--build-id")
    library = compiled("plug.c", tmp_path, *flags, "-DROOM=24").rename(tmp_path / "plug.so")
    other = compiled("plug.c", tmp_path, *flags, "-DROOM=56").rename(tmp_path / "other.so")
    lines = (*_STOP, "run", "continue", f"shell mv {other} {library}", "continue", "continue")
    output = typed(debugger, executable, lines, arguments=[str(library)] * 4)
    assert _stacks(output) == [["back", "inner", "plug", "main"]] * 4


def _stacks(output: str) -> list[list[str]]:
    """Return the functions of each output of ``bt``."""
    parts = re.split(r"^#0  ", output, flags=re.MULTILINE)[1:]
    return [re.findall(r"^(?:#\d  0x\w+ in )?(\w+) \(.*\) at ", part, re.MULTILINE) for part in parts]
