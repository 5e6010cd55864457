"""Damaged lists, and lists in the middle of a change: one clear line, and the other entries are used."""

from __future__ import annotations

import re

import pytest

from sframe_unwind.runtime_code.libunwind.listing import MAX_ENTRIES
from sframe_unwind.unwind.modules import Found, Unusable
from sframe_unwind.unwind_rule import RegisterRule
from tests.runtime_code.memory import CODE, HEAD, SIZE, Memory, modules

ADD_16 = (4, 7, 0, -16)
"""The operation ADD to rsp."""


def three(memory: Memory) -> None:
    """Register three procedures that differ only in their names; the last one is first in the list."""
    for name in ("one", "two", "three"):
        memory.entry(memory.region(SIZE, ADD_16), name)


def covered(memory: Memory, lines: list[str]) -> list[bool]:
    """Return for each of the three whether it is used."""
    process = modules(memory, lines)
    answers = [process.results[CODE + SIZE * number + 8] for number in range(3)]
    for answer in answers:
        assert not isinstance(answer, Found) or answer.rule.cfa == RegisterRule(7, 24, False)
    return [isinstance(answer, Found) for answer in answers]


@pytest.mark.parametrize("abi", ["amd64", "s390x"])
def test_sound_list(abi: str) -> None:
    memory, lines = Memory(abi), list[str]()
    memory.entry(memory.region(SIZE), "one")
    assert isinstance(modules(memory, lines).results[CODE], Found)
    assert not lines


def test_cycle() -> None:
    memory, lines = Memory(), list[str]()
    three(memory)
    memory.put(memory.entries[0], "Q", memory.entries[1])
    assert covered(memory, lines) == [True, True, True]
    (line,) = lines
    assert line.startswith("libunwind's list is circular or too long: the entry at ")


def test_dangling_pointer() -> None:
    memory, lines = Memory(), list[str]()
    three(memory)
    memory.put(memory.entries[1], "Q", 0xDEAD0000)
    assert covered(memory, lines) == [False, True, True]
    assert lines == [
        f"libunwind's list ends after the entry at {memory.entries[1]:#x}: the next is unreadable:"
        " cannot read 32 bytes of memory at 0xdead0000"
    ]


def test_unknown_version_of_the_list() -> None:
    memory, lines = Memory(), list[str]()
    three(memory)
    memory.put(HEAD, "I", 7)
    assert covered(memory, lines) == [False, False, False]
    assert lines == [f"libunwind's list at {HEAD:#x} has version 7, expected 0 or 1"]


def test_endless_list() -> None:
    """The list is generated while it is read, and so never comes to an entry that was there before."""
    memory, lines = Memory(), list[str]()
    memory.entry(0)
    read = memory.read

    def endless(address: int, size: int) -> bytes:
        if address < 1 << 32:
            return read(address, size)
        return b"".join((at + 8).to_bytes(8, "little") for at in range(address, address + size, 8))

    memory.put(memory.entries[0], "Q", 1 << 32)
    memory.read = endless  # type: ignore[method-assign]
    modules(memory, lines)
    (line,) = lines
    assert f"more than {MAX_ENTRIES:,} entries" in line


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (("format", 3), r"the entry at 0x[0-9a-f]+ has the unwind info format 3, expected 0 to 2"),
        (("regions", 0xDEAD0000), r"cannot read 16 bytes of memory at 0xdead0000"),
        (("count", 1 << 31), r"region at 0x[0-9a-f]+ has 2,147,483,648 directives, expected at most 100,000"),
        (("tag", 9), r"directive at 0x[0-9a-f]+ has the tag 9, expected 0 to 8"),
        (("tag", -1), r"directive at 0x[0-9a-f]+ has the tag -1, expected 0 to 8"),
        (("cycle", 0), r"the list of regions is circular or too long, at 0x[0-9a-f]+"),
        (("length", -SIZE - 1), r"region at 0x[0-9a-f]+ is the last 65 bytes of a procedure of 64, 0 of which"),
        (("reg", 0), r"ADD to rax, which holds no copy of SP"),
        (("label", 5), r"COPY_STATE of the label 5, which no state has"),
        (("alias", 0x1234), r"ALIAS of 0x123c: no module has code there"),
        (("alias", CODE + SIZE), r"ALIAS is circular, at 0x500048"),
    ],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_damaged_procedure(damage: tuple[str, int], expected: str) -> None:
    """The procedure in the middle is damaged: one line names it, once, and the others are used."""
    memory, lines = Memory(), list[str]()
    three(memory)
    entry = memory.entries[1]
    region = memory.get(entry + 80, "Q")
    what, value = damage
    if what == "format":
        memory.put(entry + 40, "i", value)
    elif what == "regions":
        memory.put(entry + 80, "Q", value)
    elif what == "count":
        memory.put(region + 12, "I", value)
    elif what == "tag":
        memory.put(region + 16, "b", value)
    elif what == "cycle":
        memory.put(region, "Q", region)
    elif what == "length":
        memory.put(region + 8, "i", value)
    elif what == "reg":
        memory.put(region + 18, "h", value)
    else:
        memory.put(region + 16, "bbhiq", {"label": 7, "alias": 8}[what], 0, 0, -1, value)
    process = modules(memory, lines)
    answers = [process.results[CODE + SIZE * number + 8] for number in range(3)]
    process.results.clear()
    assert isinstance(process.results[CODE + SIZE + 9], Unusable)
    assert [isinstance(answer, Found) for answer in answers] == [True, False, True]
    (line,) = lines
    assert line.startswith("run-time code: unwind info of two not used: ")
    assert re.search(expected, line), line


def test_negative_length_before_the_last_region() -> None:
    memory, lines = Memory(), list[str]()
    memory.entry(memory.region(-4, following=memory.region(4)), "one")
    assert isinstance(modules(memory, lines).results[CODE], Unusable)
    assert "has the length -4, which only the last one may have" in lines[0]


def test_changes_are_noticed_by_the_generation() -> None:
    memory, lines = Memory(), list[str]()
    three(memory)
    process = modules(memory, lines)
    assert isinstance(process.results[CODE + SIZE], Found)
    reads = memory.reads
    process.look_again()
    assert memory.reads == reads + 1
    assert CODE + SIZE in process.results
    memory.link([memory.entries[2], memory.entries[0]])
    process.look_again()
    assert not isinstance(process.results[CODE + SIZE], Found)
    assert isinstance(process.results[CODE], Found)
    assert not lines


@pytest.mark.parametrize("cancelled", [0, 1, 2])
def test_stop_in_the_middle_of_a_change(cancelled: int) -> None:
    """The generation changes before the links: a list that is read in between must be read again."""
    memory, lines = Memory(), list[str]()
    three(memory)
    memory.put(HEAD + 4, "I", 4)
    process = modules(memory, lines)
    address = CODE + SIZE * cancelled
    assert isinstance(process.results[address], Found)
    rest = [entry for entry in reversed(memory.entries) if entry != memory.entries[cancelled]]
    memory.link(rest)
    memory.put(HEAD + 4, "I", 4)
    process.look_again()
    assert not isinstance(process.results[address], Found)
    assert not lines


def test_stop_between_the_links_of_a_registration() -> None:
    memory, lines = Memory(), list[str]()
    three(memory)
    fresh = memory.place(88)
    memory.put(memory.entries[2] + 8, "Q", fresh)
    assert covered(memory, lines) == [True, True, True]
    assert not lines
