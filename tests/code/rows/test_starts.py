"""Where functions begin that no table names, on s390x."""

from __future__ import annotations

from pathlib import Path

import pytest

from sframe_unwind.convert.from_code import functions_by_code
from sframe_unwind.elf import opened
from tests.code.assembled import library

COMPUTES = """
    .globl f
    .type f,@function
f:  lghi %r2,{address}
    br %r14
    nopr
    br %r14
    .size f,.-f
"""
TEXT = 0x1000


@pytest.mark.parametrize(("address", "is_start"), [(0x1008, True), (0x1009, False)])
def test_no_function_begins_between_instructions(address: int, is_start: bool, tmp_path: Path) -> None:
    """A function may begin at an address that the code computes, and numbers may look like one."""
    with opened(library("s390x", COMPUTES.format(address=address), tmp_path, f"-Ttext={TEXT:#x}")) as binary:
        starts = [function.start for function in functions_by_code(binary, [])]
    assert starts == [TEXT, *([address] if is_start else [])]
