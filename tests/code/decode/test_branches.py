"""Jumps and calls that are decoded without VEX have the effects that VEX gives."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from sframe_unwind.code.decode.instruction import INVERSE, Expression, Instruction, Kind
from sframe_unwind.code.decode.lifting import Lifter
from sframe_unwind.code.decode.machines import MACHINES

ROUNDS = 8


def branches(name: str, random_: random.Random) -> Iterator[bytes]:
    if name == "amd64":
        for first in (0xE8, 0xE9):
            yield bytes([first]) + random_.randbytes(4)
        for first in (0xEB, *range(0x70, 0x80)):
            yield bytes([first, random_.randrange(0x80)])
        for second in range(0x80, 0x90):
            yield bytes([0x0F, second]) + random_.randbytes(4)
    elif name == "s390x":
        for mask in range(1, 16):
            yield bytes([0xA7, mask << 4 | 4]) + random_.randbytes(2)
            yield bytes([0xC0, mask << 4 | 4]) + random_.randbytes(4)
        yield b"\xc0\xe5" + random_.randbytes(4)
    else:
        for last in (0x14, 0x17, 0x94, 0x97):
            yield random_.randbytes(3) + bytes([last])
        for condition in range(16):
            yield bytes([random_.randrange(16) << 5 & 0xE0 | condition, *random_.randbytes(2), 0x54])


def ways(instruction: Instruction) -> dict[Expression, str | None]:
    """Return the targets of an instruction, and the relation of its condition."""
    following = (2, instruction.size)
    found: dict[Expression, str | None] = {instruction.target or following: None}
    for leaving in instruction.exits:
        relation = leaving.condition and leaving.condition.relation
        found[leaving.target] = relation
        found[instruction.target or following] = relation and INVERSE[relation]
    return found


@pytest.mark.parametrize("name", MACHINES)
def test_a_branch_is_what_vex_says(name: str) -> None:
    ours, vex = Lifter(MACHINES[name]), Lifter(MACHINES[name]._replace(special=lambda _: None))
    random_ = random.Random(name)
    for _ in range(ROUNDS):
        for raw in branches(name, random_):
            one, other = ours.instruction(raw, 0), vex.instruction(raw, 0)
            same = ("size", "puts", "stores", "link")
            assert [getattr(one, field) for field in same] == [getattr(other, field) for field in same], raw.hex()
            assert (one.kind is Kind.CALL) == (other.kind is Kind.CALL)  # VEX may turn a condition round
            assert ways(one).keys() == ways(other).keys(), raw.hex()
            # Conditions that the interpretation does not use are left out.
            said = {way: relation for way, relation in ways(one).items() if relation is not None}
            assert said.items() <= ways(other).items(), raw.hex()


def test_a_hint_about_a_condition_makes_no_difference() -> None:
    """``bc.cond`` of AArch64 does what ``b.cond`` does (Arm ARM, C6.2); VEX does not know it."""
    lifter = Lifter(MACHINES["aarch64"])
    for condition in range(16):
        plain, hinted = (bytes([low << 4 | condition, 0x10, 0x20, 0x54]) for low in (0x2, 0x3))
        assert lifter.instruction(hinted, 0) == lifter.instruction(plain, 0)
        assert lifter.instruction(hinted, 0).kind is not Kind.STOP


@pytest.mark.parametrize("word", [0xD4400000, 0xD69F0BFF, 0x55000000, 0x55C00000])
def test_nothing_follows_a_branch_that_is_not_known(word: int) -> None:
    """``hlt``, ``eretaa``, and ``retaasppc`` and its like with a distance."""
    assert Lifter(MACHINES["aarch64"]).instruction(word.to_bytes(4, "little"), 0).kind in (Kind.STOP, Kind.TRAP)
