"""Instructions that are made from the shape of others equal the lifted ones."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from lab.code.witness.encodings import generated, libraries, of_file
from sframe_unwind.code.decode.lifting import Lifter
from sframe_unwind.code.decode.machines import MACHINES
from sframe_unwind.code.decode.machines.base import Shape
from tests.missing import absent

NAMES = ("amd64", "aarch64", "s390x")
SEED, SAMPLED, GENERATED, EACH = 1, 2000, 400, 4


def differing(name: str, instructions: list[bytes]) -> tuple[list[str], int]:
    """Return the made instructions that differ from the lifted ones, and the number of those with a known shape."""
    lifter, direct = Lifter(MACHINES[name]), Lifter(MACHINES[name])
    seen: defaultdict[bytes, int] = defaultdict(int)
    wrong, repeated = [], 0
    for raw in instructions:
        shape = None if lifter.machine.special(raw) else lifter.machine.shape(raw)
        found = lifter.instruction(raw, 0)
        if shape is not None:
            repeated += seen[shape.key] >= 2
            seen[shape.key] += 1
            if found != direct.lifted(raw):
                wrong.append(raw.hex())
    return wrong, repeated


@pytest.mark.parametrize("name", NAMES)
def test_the_instructions_of_libraries_are_as_lifted(name: str) -> None:
    paths = libraries(name)
    if not paths:
        absent(f"no library of {name} is installed: its instructions stay untested")
    lifter = Lifter(MACHINES[name])
    by_shape: defaultdict[bytes, list[bytes]] = defaultdict(list)
    seen: set[bytes] = set()
    for path in paths[:12]:
        for raw in of_file(path, lifter, seen):
            shape = lifter.machine.shape(raw)
            if shape is not None:
                by_shape[shape.key].append(raw)
    chosen = [raw for same in by_shape.values() if len(same) > 2 for raw in same]
    chosen = chosen[:SAMPLED]
    wrong, repeated = differing(name, chosen)
    assert not wrong
    assert repeated > len(chosen) // 2


@pytest.mark.parametrize("name", NAMES)
def test_random_displacements_are_as_lifted(name: str) -> None:
    machine, random_ = MACHINES[name], random.Random(SEED)
    chosen: list[bytes] = []
    for raw in generated(machine, random_):
        shape = machine.shape(raw)
        if shape is not None:
            chosen += varied(name, raw, shape, random_)
        if len(chosen) >= GENERATED * EACH:
            break
    wrong, repeated = differing(name, chosen)
    assert not wrong
    assert repeated > GENERATED // 4


def varied(name: str, raw: bytes, shape: Shape, random_: random.Random) -> list[bytes]:
    """Return instructions of the same shape, found by changing bits."""
    found = [raw[: shape.size]]
    for _ in range(40):
        if len(found) < EACH:
            bit = random_.randrange(8 * shape.size)
            changed = int.from_bytes(found[-1], "big") ^ 1 << bit
            other = changed.to_bytes(shape.size, "big")
            again = MACHINES[name].shape(other)
            if again is not None and again.key == shape.key and other not in found:
                found.append(other)
    return found
