"""A large file is checked without all of its code and its instructions in memory."""

from __future__ import annotations

import random
from io import BytesIO

import pytest

from sframe_unwind import elf
from sframe_unwind.code import lifting, section_contents
from sframe_unwind.code.lifting import Lifter
from sframe_unwind.code.machines import MACHINES
from sframe_unwind.code.section_contents import SectionContents
from sframe_unwind.elf import ElfBinary
from sframe_unwind.verify.code_check import check_elf
from tests.code.witness.encodings import of_file, small_library

NAMES = ("amd64", "aarch64", "s390x")
FEW = 64


@pytest.mark.parametrize("name", NAMES)
def test_instructions_that_were_forgotten_are_made_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path, usual = small_library(name), Lifter(MACHINES[name])
    instructions = list(of_file(path, usual, set()))
    monkeypatch.setattr(lifting, "_MAX_CACHED", FEW)
    lifter = Lifter(MACHINES[name])
    for raw in [*instructions, *instructions[:FEW]]:
        assert lifter.instruction(raw, 0) == usual.instruction(raw, 0)
        assert len(lifter._known) <= FEW
        assert len(lifter._made) <= FEW


@pytest.mark.parametrize("name", NAMES)
def test_code_that_is_read_in_parts_is_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(section_contents, "_PIECE", 512)  # many functions are larger
    monkeypatch.setattr(section_contents, "_MAX_KEPT", 2)
    path = small_library(name)
    with elf.opened(path) as binary:
        assert binary.descriptor is not None
        found = check_elf(binary, None)
    in_memory = ElfBinary(BytesIO(path.read_bytes()), path.name)
    assert in_memory.descriptor is None
    assert found == check_elf(in_memory, None)


def test_the_parts_of_a_section(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(section_contents, "_PIECE", 16)
    monkeypatch.setattr(section_contents, "_MAX_KEPT", 4)
    random_ = random.Random(1)
    whole = random_.randbytes(1000)
    contents = SectionContents(lambda offset, size: whole[offset : offset + size], len(whole))
    assert len(contents) == len(whole)
    for _ in range(2000):
        start, size = random_.randrange(1020), random_.randrange(40)
        assert contents[start : start + size] == whole[start : start + size]
        assert len(contents._pieces) <= 4
