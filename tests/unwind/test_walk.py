"""The walk: its guards, its fallback unwinder, and why it ends (edge cases 15, 18, 21 to 27)."""

from __future__ import annotations

import pytest

from sframe_unwind.sframe.constants import ARCH_BY_ABI, AbiNumber
from sframe_unwind.sframe.section import Section
from sframe_unwind.unwind.modules import Module
from sframe_unwind.unwind.other_stacks import OtherStacks
from sframe_unwind.unwind.step import Caller
from sframe_unwind.unwind.walk import End, FallbackUnwinder, Frame, Registers, UnwindResult, Walk
from sframe_unwind.unwind_rule import OUTERMOST, RegisterRule, UnwindRule, saved_at_cfa
from tests.unwind.world import CODE, STACK, Memory, module, sp_based, walk

AMD64, AARCH64, S390X = AbiNumber.AMD64_ENDIAN_LITTLE, AbiNumber.AARCH64_ENDIAN_LITTLE, AbiNumber.S390X_ENDIAN_BIG
F, G, START = CODE, CODE + 0x100, CODE + 0x200
"""The starts of three functions of 0x100 bytes."""


def three_functions(abi: AbiNumber = AMD64) -> Module:
    """Return a process whose f and g have frames of 16 bytes, and whose start is outermost."""
    rule = sp_based(ARCH_BY_ABI[abi], 16, ra_at=-8)
    return module(abi, {(F, 0x100): [(0, rule)], (G, 0x100): [(0, rule)], (START, 0x100): [(0, OUTERMOST)]})


def stack_of(*return_addresses: int) -> Memory:
    """Return the words of a stack with frames of 16 bytes, from the inside out."""
    return Memory({STACK + 16 * n + 8: address for n, address in enumerate(return_addresses)})


def test_complete_walk_ends_at_the_outermost_frame() -> None:
    memory = stack_of(G + 0x20, START + 0x20)
    frames, ended = walk(AMD64, [three_functions()], Registers(F + 4, STACK, 0), memory)
    assert [(frame.level, frame.pc, frame.cfa) for frame in frames] == [
        (0, F + 4, STACK + 16),
        (1, G + 0x20, STACK + 32),
        (2, START + 0x20, None),
    ]
    assert {frame.unwinder for frame in frames} == {"sframe"}
    assert ended.end is End.OUTERMOST
    assert memory.reads == 2  # a frame whose FP is unchanged needs one read


def test_item_15_caller_is_looked_up_at_pc_minus_1() -> None:
    """The call is f's last instruction: the return address is that of g, whose row would give another CFA."""
    abi = ARCH_BY_ABI[AMD64]
    noreturn = module(
        AMD64,
        {
            (F, 0x100): [(0, sp_based(abi, 16))],
            (G, 0x100): [(0, sp_based(abi, 8))],
            (START, 0x100): [(0, OUTERMOST)],
        },
    )
    memory = stack_of(F + 0x100, START + 1)
    frames, ended = walk(AMD64, [noreturn], Registers(F + 4, STACK, 0), memory)
    assert [frame.cfa for frame in frames] == [STACK + 16, STACK + 32, None]
    frames, _ = walk(AMD64, [noreturn], Registers(G, STACK, 0), Memory({STACK: START + 1}))
    assert frames[0].cfa == STACK + 8  # the innermost frame is at its pc itself
    assert ended.end is End.OUTERMOST


def test_item_15_interrupted_frame_is_looked_up_at_its_pc() -> None:
    abi = ARCH_BY_ABI[AMD64]
    with_trampoline = module(
        AMD64,
        {
            (F, 0x100): [(0, sp_based(abi, 64))],
            (G, 0x100): [(0, sp_based(abi, 8)), (1, sp_based(abi, 16))],
            (START, 0x100): [(0, OUTERMOST)],
        },
        signal=[F],
    )
    memory = Memory({STACK + 56: G, STACK + 64: START + 1})
    frames, ended = walk(AMD64, [with_trampoline], Registers(F, STACK, 0), memory)
    assert [frame.pc for frame in frames] == [F, G, START + 1]
    assert frames[1].cfa == STACK + 72  # the row at g's first instruction
    assert ended.end is End.OUTERMOST


def test_item_18_return_register_only_in_the_innermost_frame() -> None:
    abi = ARCH_BY_ABI[AARCH64]
    leaf = module(AARCH64, {(F, 0x100): [(0, sp_based(abi, 16))], (G, 0x100): [(0, sp_based(abi, 16))]})
    frames, ended = walk(AARCH64, [leaf], Registers(F, STACK, 0), Memory({}), others={30: G + 8})
    assert [frame.pc for frame in frames] == [F, G + 8]
    assert ended.end is End.CORRUPT
    assert "the rule needs x30" in ended.detail


def test_item_21_leaf_with_an_untouched_stack() -> None:
    abi = ARCH_BY_ABI[AARCH64]
    rules = {(F, 0x100): [(0, sp_based(abi, 0))], (START, 0x100): [(0, OUTERMOST)]}
    frames, ended = walk(AARCH64, [module(AARCH64, rules)], Registers(F, STACK, 0), Memory({}), others={30: START + 4})
    assert [frame.cfa for frame in frames] == [STACK, None]
    assert ended.end is End.OUTERMOST


def test_item_22_no_fde_is_not_the_end_of_the_stack() -> None:
    frames, ended = walk(AMD64, [three_functions()], Registers(CODE + 0x900, STACK, 0), Memory({}))
    assert [frame.unwinder for frame in frames] == [""]
    assert (ended.end, ended.detail) == (End.NO_DATA, "no SFrame function contains the address")


def test_item_23_cycle_ends() -> None:
    """The CFA of f is its own SP: without the guard the walk would not end."""
    abi = ARCH_BY_ABI[AARCH64]
    rules = {(F, 0x100): [(0, sp_based(abi, 0, ra_at=0))]}
    memory = Memory({STACK: F + 4})
    frames, ended = walk(AARCH64, [module(AARCH64, rules)], Registers(F + 4, STACK, 0), memory)
    assert len(frames) == 1
    assert ended.end is End.CORRUPT
    assert "does not lie outward" in ended.detail


def test_item_35_frames_on_two_stacks() -> None:
    """The caller is on a stack at lower addresses.  The records lead to each other: a walk without end."""
    low, high, ra = STACK - 0x10000, STACK + 0x100, F + 8
    memory = Memory({low: high, low + 8: ra, high: low, high + 8: ra})
    start = Registers(F, STACK, low)
    frames, ended = two_stacks(memory, start, CALL)
    assert [frame.sp for frame in frames] == [STACK, low + 16, high + 16]
    assert (ended.end, "does not lie outward" in ended.detail) == (End.CORRUPT, True)
    assert len(two_stacks(memory, start, NO_CALL)[0]) == 1
    near = STACK - 0xFF0
    assert len(two_stacks(Memory({near: high, near + 8: ra}), Registers(F, STACK, near), CALL)[0]) == 1


CALL, NO_CALL = b"\xe8\0\0\0\0".rjust(8, b"\x90"), bytes(8)


def two_stacks(memory: Memory, start: Registers, code: bytes) -> tuple[list[Frame], Walk]:
    """Walk by frame records.

    :param code: the code before each return address.
    """
    arch = ARCH_BY_ABI[AMD64]
    rule = UnwindRule(RegisterRule(arch.fp, 16, False), saved_at_cfa(-8), saved_at_cfa(-16))
    by_records = module(AMD64, {(F, 0x100): [(0, rule)]})
    return walk(AMD64, [by_records], start, memory, other_stacks=OtherStacks(arch, lambda *_: code))


def test_item_23_unaligned_cfa_ends() -> None:
    _, ended = walk(AMD64, [three_functions()], Registers(F, STACK + 1, 0), Memory({}))
    assert ended.end is End.CORRUPT
    assert f"{STACK + 17:#x} is not a multiple of 8" in ended.detail


def test_item_23_pc_zero_ends() -> None:
    frames, ended = walk(AMD64, [three_functions()], Registers(F, STACK, 0), stack_of(0))
    assert len(frames) == 1
    assert ended.end is End.PC_ZERO


def test_item_23_limit_ends() -> None:
    memory = stack_of(*[F + 8] * 50)
    frames, ended = walk(AMD64, [three_functions()], Registers(F, STACK, 0), memory, limit=20)
    assert len(frames) == 20
    assert (ended.end, ended.detail) == (End.LIMIT, "20 frames")


def test_item_24_four_different_answers() -> None:
    registers = Registers(F, STACK, 0)
    broken = Module("broken", [(CODE, CODE + 0x1000)], lambda: Section(b"xxxx", 0))
    ends = {
        walk(AMD64, [three_functions()], registers, stack_of(START + 1))[1].end,
        walk(AMD64, [three_functions()], Registers(1, STACK, 0), stack_of())[1].end,
        walk(AMD64, [broken], registers, stack_of())[1].end,
        walk(AMD64, [three_functions()], registers, stack_of())[1].end,
    }
    assert ends == {End.OUTERMOST, End.NO_DATA, End.CORRUPT, End.UNREADABLE}


def test_item_25_goes_on_after_frames_without_sframe() -> None:
    elsewhere = 0x9000_0000
    asked: list[tuple[Registers, bool]] = []

    def unwind(registers: Registers, interrupted: bool, _read_register: object) -> UnwindResult | None:
        asked.append((registers, interrupted))
        if registers.pc < elsewhere:
            return None
        cfa = registers.sp + 32
        return UnwindResult(Caller(cfa, G + 8, cfa, 77), False, None)

    memory = Memory({STACK + 8: elsewhere + 5, STACK + 48 + 8: START + 9})
    other = FallbackUnwinder("other", unwind)
    frames, ended = walk(AMD64, [three_functions()], Registers(F, STACK, 5), memory, fallback=other)
    assert [(frame.pc, frame.unwinder) for frame in frames] == [
        (F, "sframe"),
        (elsewhere + 5, "other"),
        (G + 8, "sframe"),
        (START + 9, "sframe"),
    ]
    assert [frame.fp for frame in frames] == [5, 5, 77, 77]
    assert asked == [(Registers(elsewhere + 5, STACK + 16, 5), False)]
    assert ended.end is End.OUTERMOST


def test_a_rule_that_cannot_hold_is_left_to_the_other_unwinder() -> None:
    """SFrame's rule needs a stack word that is unreadable; the other unwinder knows the caller."""
    caller = Caller(STACK + 64, START + 2, STACK + 64, 0)
    other = FallbackUnwinder("other", lambda *_: UnwindResult(caller, False, None))
    frames, ended = walk(AMD64, [three_functions()], Registers(F, STACK, 0), Memory({}), fallback=other)
    assert [(frame.pc, frame.unwinder) for frame in frames] == [(F, "other"), (START + 2, "sframe")]
    assert ended.end is End.OUTERMOST


@pytest.mark.parametrize("sp", [STACK, STACK - 16])
def test_the_other_unwinder_must_move_outward_too(sp: int) -> None:
    other = FallbackUnwinder("other", lambda *_: UnwindResult(Caller(sp, 0x1234, sp, 0), False, None))
    frames, ended = walk(AMD64, [], Registers(0x1234, STACK, 0), Memory({}), fallback=other)
    assert len(frames) == 1
    assert ended.end is End.CORRUPT


def test_item_27_deep_recursion_in_bounded_memory() -> None:
    """The stack has 100,000 frames; the walk itself keeps none of them."""
    depth = 100_000
    memory = stack_of(*[G + 8] * depth, START + 4)
    steps = walk(AMD64, [three_functions()], Registers(F, STACK, 0), memory, limit=depth + 10)
    assert len(steps[0]) == depth + 2
    assert steps[1].end is End.OUTERMOST
    assert memory.reads == depth + 1


def test_s390x_callers_sp_lies_below_the_cfa() -> None:
    abi = ARCH_BY_ABI[S390X]
    rule = sp_based(abi, 160 + 80, fp_at=-72, ra_at=-48)
    rules = {(F, 0x100): [(0, rule)], (START, 0x100): [(0, OUTERMOST)]}
    memory = Memory({STACK + 240 - 48: START + 6, STACK + 240 - 72: 0x55})
    frames, ended = walk(S390X, [module(S390X, rules)], Registers(F + 6, STACK, 1), memory)
    assert [(frame.sp, frame.cfa, frame.fp) for frame in frames] == [(STACK, STACK + 240, 1), (STACK + 80, None, 0x55)]
    assert ended.end is End.OUTERMOST
