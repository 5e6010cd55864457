"""A large file is checked without all of its code and its instructions in memory."""

from __future__ import annotations

import itertools
import random
import tracemalloc
from io import BytesIO

import pytest

from lab.code.witness.encodings import of_file, small_library
from sframe_unwind import elf
from sframe_unwind.code.decode import lifting, shapes
from sframe_unwind.code.decode.lifting import Lifter
from sframe_unwind.code.decode.machines import MACHINES
from sframe_unwind.code.image import section_contents
from sframe_unwind.code.image.ranges import CodeRanges, Starts
from sframe_unwind.code.image.section_contents import SectionContents
from sframe_unwind.code.interpret.run import Passed
from sframe_unwind.code.interpret.stores import Written
from sframe_unwind.code.judge.findings import DWARF, Counts, FunctionResult, Unknown
from sframe_unwind.code.judge.results import Pool, Results
from sframe_unwind.elf import ElfBinary
from sframe_unwind.verify import Plan, verify
from sframe_unwind.verify.code_check import check_elf

NAMES = ("amd64", "aarch64", "s390x")
FEW = 64
SOME = 2_000


def some_instructions(name: str, lifter: Lifter) -> list[bytes]:
    """Return different instructions of a library, many times more than what is kept."""
    return list(itertools.islice(of_file(small_library(name), lifter, set()), SOME))


@pytest.mark.parametrize("name", NAMES)
def test_instructions_that_were_forgotten_are_made_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = Lifter(MACHINES[name])
    instructions = some_instructions(name, usual)
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


PLAIN = FunctionResult(
    start=0,
    instructions=0,
    counts={},
    findings=(),
    unknown=(),
    wanted={},
    elsewhere={},
    continued=frozenset[int](),
    called=(),
    called_within=(),
    returns=True,
    changes_fp=False,
    moves_sp=0,
    comes_back=True,
    presumes=False,
    complete=True,
    ends_as_entered=True,
    rests_on_effects=False,
    stores=frozenset[Written](),
    passed=frozenset[Passed](),
)
"""The result of a function in which nothing was found."""


def test_the_results_of_functions_take_little_memory() -> None:
    count = 20_000
    random_ = random.Random(1)
    starts = [0x1000 + 64 * number for number in range(count)]
    ranges = CodeRanges((start, start + 40) for start in starts)
    given = {}
    for start in starts:
        size = random_.randrange(100)
        called = tuple(sorted(random_.sample(starts, 3)))
        given[start] = PLAIN._replace(start=start, instructions=size, counts={DWARF: Counts(size, 0, 0)}, called=called)
    tracemalloc.start()
    try:
        results = Results(ranges, Pool())
        for result in given.values():
            results.add(result)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < 80 * count
    assert [start for start, _ in results.all()] == starts
    for start, common in results.all():
        assert common.at(start)._replace(called=given[start].called) == given[start]
        assert tuple(results.called(start)) == given[start].called
    assert [results.get(start) for start in starts[::100]] == [given[start].at(start) for start in starts[::100]]
    assert results.get(starts[0] + 1) is None


def test_what_was_found_at_an_address_moves_with_its_function() -> None:
    unknown = (
        Unknown(address=0x1010, table=DWARF, why="why", origin=0x1004, instruction="nop", instructions=1),
        Unknown(address=0x1020, table=DWARF, why="why", origin=None, instruction="", instructions=2),
    )
    found = PLAIN._replace(start=0x1000, instructions=9, unknown=unknown)
    moved = found.at(0x3000)
    assert [(one.address, one.origin) for one in moved.unknown] == [(0x3010, 0x3004), (0x3020, None)]
    assert moved.at(0x1000) == found


def test_functions_are_listed_for_a_page_only() -> None:
    path = small_library("amd64")
    listed, counted = (verify(path, Plan(False, True, listing=listing)) for listing in (True, False))
    assert listed.code is not None
    assert counted.code is not None
    assert len(listed.functions) == len(listed.code.judged) == counted.code.functions > 0
    assert not counted.functions
    assert not counted.code.judged
    assert listed.to_json() == counted.to_json()


def test_a_set_of_functions() -> None:
    starts = [0x1000, 0x1040, 0x2000]
    found = Starts(CodeRanges((start, start + 16) for start in starts))
    assert not [start for start in starts if start in found]
    found.add(0x1040)
    assert [start for start in (None, 0, 0x1000, 0x1040, 0x1041, 0x2000, 0x3000) if start in found] == [0x1040]


@pytest.mark.parametrize("name", NAMES)
def test_shapes_that_were_forgotten_are_learned_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = Lifter(MACHINES[name])
    instructions = some_instructions(name, usual)
    monkeypatch.setattr(lifting, "_MAX_CACHED", FEW)
    monkeypatch.setattr(shapes, "_MAX_SHAPES", FEW)
    lifter = Lifter(MACHINES[name])
    for raw in instructions:
        assert lifter.instruction(raw, 0) == usual.instruction(raw, 0)
        assert len(lifter._shapes._known) <= FEW
