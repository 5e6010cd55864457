"""The image of a file's code: which of its functions other files can call."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sframe_unwind.code.decode.machines import MACHINES
from sframe_unwind.code.image.elf_image import image_of
from sframe_unwind.elf import opened
from tests.elf.many_sections import many_sections
from tests.elf.objects import tools_for
from tests.hanging import HANG
from tests.work import at_most_lines

_SOURCE = """
.globl first, second
.type first, @function
.type second, @function
.type local, @function
.text
nop
first: ret
local: ret
second: ret
"""


@pytest.mark.parametrize("form", ["object", "-shared", "-Ttext=0x401000"])
def test_functions_that_other_files_can_call(form: str, tmp_path: Path) -> None:
    tools, made = tools_for("amd64", 3), tmp_path / "made.o"
    subprocess.run([str(tools / "as"), "-o", str(made), "-"], input=_SOURCE, text=True, check=True, timeout=HANG)
    if form != "object":
        linked = tmp_path / "linked"
        subprocess.run([str(tools / "ld"), form, "-e", "first", "-o", str(linked), str(made)], check=True, timeout=HANG)
        made = linked
    listed = subprocess.run(["nm", "-g", str(made)], capture_output=True, text=True, check=True, timeout=HANG).stdout
    addresses = {name: int(address, 16) for address, _, name in map(str.split, listed.splitlines())}
    expected = addresses["first"], addresses["second"]  # the linker's own symbols are not functions
    with opened(made) as binary:
        image, layout = image_of(binary, MACHINES[binary.arch.name]), binary.layout
        # Sections of an object file have addresses that the layout gives them.
        (text,) = (section for section in binary.sections if section.name == ".text")
        start = layout.addresses[text.number] if layout.relocatable else 0
    assert set(image.reachable) == {start + address for address in expected}


def test_a_section_for_each_function(tmp_path: Path) -> None:
    """Each has relocations: the symbols are decoded once."""
    count = 1_000
    with opened(many_sections(tmp_path, count)) as binary:
        with at_most_lines(600 * count):
            image = image_of(binary, MACHINES[binary.arch.name])
        first, second = (next(s for s in binary.symbols if s.name == name).address for name in ("f1", "f7"))
    call, size = first + 1, 5
    assert image.read(call + 1, 4) == second - call - size  # f1 calls f7
