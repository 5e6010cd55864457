"""Instructions that are made from the shape of others equal the lifted ones."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from lab.code.witness.encodings import generated, libraries, of_file
from sframe_unwind.code.decode.instruction import Instruction
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


def direct(opcode: bytes, field: int, operand: int) -> bytes:
    """Return an instruction of AMD64 with two registers."""
    return bytes((0x48 | field >> 3 << 2 | operand >> 3, *opcode, 0xC0 | (field & 7) << 3 | operand & 7))


def indexed(opcode: bytes, field: int, base: int, index: int) -> bytes:
    """Return an instruction of AMD64 with an operand in memory; the index 4 is none."""
    rex = 0x48 | field >> 3 << 2 | index >> 3 << 1 | base >> 3
    return bytes((rex, *opcode, 0x44 | (field & 7) << 3, 0x80 | (index & 7) << 3 | base & 7, 8 + base + 4 * index))


SIMPLE = (b"\x89", b"\x31", b"\x39", b"\x1b", b"\x85", b"\x63", b"\x0f\xaf", b"\x0f\x44", b"\x0f\xbe")
"""mov, xor, cmp, sbb, test, movslq, imul, cmove, movsx"""


@pytest.mark.parametrize("opcode", SIMPLE, ids=bytes.hex)
def test_all_registers_are_as_lifted(opcode: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    registers = range(16)
    instructions = [direct(opcode, field, operand) for field in registers for operand in registers]
    instructions += [
        indexed(opcode, field, base, index) for field in (4, 11) for base in registers for index in registers
    ]
    random.Random(SEED).shuffle(instructions)  # a shape is learned from two in which all registers differ
    lifter, usual = Lifter(MACHINES["amd64"]), Lifter(MACHINES["amd64"])
    lifted: list[bytes] = []

    def counted(raw: bytes) -> Instruction:
        lifted.append(raw)
        return usual.lifted(raw)

    monkeypatch.setattr(lifter, "lifted", counted)
    assert not [raw.hex() for raw in instructions if lifter.instruction(raw, 0) != usual.lifted(raw)]
    assert 0 < len(lifted) < len(instructions) // 8


def test_an_operand_by_no_register_is_not_one_by_the_address_of_the_instruction() -> None:
    by_pc, absolute = (bytes.fromhex(text) for text in ("488b0510000000", "488b042510000000"))
    shapes_of = [MACHINES["amd64"].shape(raw) for raw in (by_pc, absolute)]
    assert shapes_of[0] is not None
    assert shapes_of[1] is not None
    assert shapes_of[0].key != shapes_of[1].key


def test_high_halves_of_registers_are_no_registers() -> None:
    """``mov %ah,%bl`` has no REX, in which case 4 to 7 are the second bytes of the first four registers."""
    lifter, usual = Lifter(MACHINES["amd64"]), Lifter(MACHINES["amd64"])
    instructions = [bytes((0x88, 0xC0 | field << 3 | operand)) for field in range(8) for operand in range(8)]
    instructions += [bytes((0x40, *raw)) for raw in instructions]
    assert not [raw.hex() for raw in instructions if lifter.instruction(raw, 0) != usual.lifted(raw)]


@pytest.mark.parametrize("opcode", [b"\x8d", b"\x8b", b"\x3b", b"\x0f\xb6", b"\x0f\x44"], ids=bytes.hex)
def test_distances_from_longer_instructions_are_as_lifted(opcode: bytes) -> None:
    """With REX, an instruction is longer, and what is at a distance from its end is elsewhere."""
    instructions = []
    for number in range(24):
        rex = bytes((0x40 | (number >> 3 & 1) << 2,)) if number >= 8 else b""
        mode = (number & 7) << 3 | 5
        instructions.append(rex + opcode + bytes((mode,)) + (16 * number + 4).to_bytes(4, "little"))
    random.Random(SEED).shuffle(instructions)
    wrong, repeated = differing("amd64", instructions)
    assert not wrong
    assert repeated
