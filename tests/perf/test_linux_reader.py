"""SFrame as Linux would load it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sframe_unwind.arch import BY_NAME
from sframe_unwind.elf import opened
from sframe_unwind.errors import FormatError
from sframe_unwind.perf.linux_reader import LinuxModule
from sframe_unwind.unwind.modules import Modules
from tests.hanging import HANG
from tests.samples.build import build


def test_a_file_with_two_sections(tmp_path: Path) -> None:
    """The linker makes one section, and Linux loads one."""
    one, two = build("free_walk", version=3), tmp_path / "two"
    command: list[str | Path] = ["objcopy", "--rename-section", ".comment=.sframe", one, two]
    subprocess.run(command, check=True, timeout=HANG)
    with opened(one) as binary:
        (section,) = binary.sframe
        code = tuple(binary.layout.code)
    module = LinuxModule("two", code, lambda: section, str(two), 0)
    with pytest.raises(FormatError, match="Linux refuses the section: 2 SFrame sections, expected 1"):
        module.look_up(code[0][0], Modules(BY_NAME["amd64"], [module]))
