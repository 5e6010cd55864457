"""A recursion that is followed many frames at once, compared with one step for each frame."""

from __future__ import annotations

import pytest

from sframe_unwind.arch import BY_NAME, Arch
from sframe_unwind.errors import MemoryReadError
from sframe_unwind.memory import WordReader
from sframe_unwind.unwind.recursion import RECENT, WalkedFrame, further_out, repetition, skip_repetition
from sframe_unwind.unwind.step import step
from sframe_unwind.unwind.walk import SFRAME, Frame, Registers
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule, saved_at_cfa

STACK = 0x7FFF_0000
AMD64 = BY_NAME["amd64"]


class Stack:
    """The memory of a stack, and the rules of the functions on it by their return addresses."""

    def __init__(self, arch: Arch, size: int) -> None:
        self.arch = arch
        self.data = bytearray(size)
        self.reads = 0

    def put(self, address: int, value: int) -> None:
        self.data[address - STACK : address - STACK + 8] = value.to_bytes(8, self.arch.byteorder)

    def read(self, address: int, size: int) -> bytes:
        self.reads += 1
        at = address - STACK
        if not 0 <= at <= len(self.data) - size:
            raise MemoryReadError(address, size)
        return bytes(self.data[at : at + size])


def rule(base: int, offset: int, fp_at: int | None = None, ra_at: int = -8) -> UnwindRule:
    fp = None if fp_at is None else saved_at_cfa(fp_at)
    return UnwindRule(RegisterRule(base, offset, False), saved_at_cfa(ra_at), fp)


def built(arch: Arch, kinds: list[tuple[int, UnwindRule, int]], frames: int) -> tuple[Stack, dict[int, UnwindRule]]:
    """Return a stack on which functions call each other in turn.

    :param kinds: of each function, the pc, the rule, and the size of its frame in bytes.
    """
    stack = Stack(arch, sum(kinds[n % len(kinds)][2] for n in range(frames)) + 64)
    sp = STACK
    for number in range(frames):
        _, its, size = kinds[number % len(kinds)]
        cfa = sp + size
        assert its.ra is not None
        stack.put(cfa + its.ra.offset, kinds[(number + 1) % len(kinds)][0])
        if its.fp is not None:
            outer = kinds[(number + 1) % len(kinds)][2]
            stack.put(cfa + its.fp.offset, cfa + outer - 16)
        sp = cfa
    return stack, {pc: its for pc, its, _ in kinds}


def stepped(stack: Stack, rules: dict[int, UnwindRule], registers: Registers, frames: int) -> list[WalkedFrame]:
    """Return the frames of a walk with one step for each."""
    walked = []
    read_word = WordReader(stack.read, stack.arch.byteorder)
    for _ in range(frames):
        pc, sp, fp = registers
        caller = step(rules[pc], stack.arch, sp, fp, read_word)
        walked.append(WalkedFrame(registers, caller, rules[pc]))
        registers = Registers(*caller[1:])
    return walked


SIZES = {
    "one function": [(0x1000, rule(AMD64.sp, 48), 48)],
    "one with a frame pointer": [(0x1000, rule(AMD64.fp, 16, -16), 64)],
    "three": [
        (0x1000, rule(AMD64.sp, 48, -24), 48),
        (0x2000, rule(AMD64.sp, 16), 16),
        (0x3000, rule(AMD64.sp, 32), 32),
    ],
    "both bases": [
        (0x1000, rule(AMD64.fp, 16, -16), 64),
        (0x2000, rule(AMD64.sp, 48, -16), 48),
    ],
}
S390X = BY_NAME["s390x"]


@pytest.mark.parametrize("kinds", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("change", [None, 300, 1900])
def test_frames_are_those_of_single_steps(kinds: list[tuple[int, UnwindRule, int]], change: int | None) -> None:
    """Up to the frame whose return address is another one, or to the end of the stack."""
    frames = 2000
    stack, rules = built(AMD64, kinds, frames)
    innermost = Registers(kinds[0][0], STACK, STACK + kinds[0][2] - 16)
    every = stepped(stack, rules, innermost, frames - 1)
    if change is not None:
        its = every[change]
        assert its.rule.ra is not None
        stack.put(its.caller.cfa + its.rule.ra.offset, 0xBAD)
    stack.reads = 0
    skipped, registers = skip_repetition(every[:RECENT], AMD64, stack.read)
    assert stack.reads <= 20
    last = change if change is not None else frames
    assert last - RECENT - len(kinds) <= skipped <= last - RECENT
    if skipped + RECENT < len(every):
        expected = every[skipped + RECENT].registers
        assert registers[:2] == expected[:2]
        if any(its.fp for its in rules.values()):
            assert registers.fp == expected.fp


@pytest.mark.parametrize("name", SIZES)
def test_a_frame_some_rounds_further_out(name: str) -> None:
    kinds, frames = SIZES[name], 1000
    stack, rules = built(AMD64, kinds, frames)
    every = stepped(stack, rules, Registers(kinds[0][0], STACK, STACK + kinds[0][2] - 16), frames - 1)
    walked = [Frame(n, *one.registers, one.caller.cfa, SFRAME, False) for n, one in enumerate(every)]
    found = repetition(every[:RECENT], AMD64, stack.read)
    assert found is not None
    assert (found.length, found.size) == (len(kinds), sum(size for _, _, size in kinds))
    if name == "three":  # a frame pointer is saved that leads nowhere
        assert found.fp_change is None
        return
    inner = walked[RECENT - found.length : RECENT]
    made = [further_out(frame, found, rounds) for rounds in range(1, found.rounds + 1) for frame in inner]
    assert made[: frames - 1 - RECENT] == walked[RECENT : RECENT + len(made)]
    assert len(made) > frames - RECENT - 2 * len(kinds)


def test_big_endian_words() -> None:
    its = rule(S390X.sp, 176 + 160, ra_at=-48)
    stack = Stack(S390X, 176 * 1000)
    for number in range(998):
        stack.put(STACK + 176 * number + 336 - 48, 0x1000)
    every = stepped(stack, {0x1000: its}, Registers(0x1000, STACK, 0), 900)
    skipped, registers = skip_repetition(every[:RECENT], S390X, stack.read)
    assert skipped >= 900 - RECENT
    assert registers.sp - every[RECENT - 1].caller.sp == 176 * skipped


def test_frames_that_differ_in_size_are_not_skipped() -> None:
    stack, rules = built(AMD64, [(0x1000, rule(AMD64.fp, 16, -16), 64)], 100)
    at = STACK
    for number in range(100):  # alloca: a frame pointer further out each time
        at += 64 + 8 * number
        if at - STACK < len(stack.data) - 16:
            stack.put(at - 16, at + 64 + 8 * (number + 1) - 16)
            stack.put(at - 8, 0x1000)
    every = stepped(stack, rules, Registers(0x1000, STACK, STACK + 48), 20)
    assert skip_repetition(every, AMD64, stack.read)[0] == 0
