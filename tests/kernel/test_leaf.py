"""The callers of interrupted functions that have neither SFrame nor CFI: functions in assembly of AArch64."""

from __future__ import annotations

import random
from typing import Any

import pytest

from sframe_unwind.arch.aarch64_leaf import goes_on
from sframe_unwind.debugger.contexts import walk
from sframe_unwind.kernel.leaf import returns_untouched
from sframe_unwind.kernel.unwinder import NAME, KernelUnwinder
from sframe_unwind.unwind.modules import Modules
from sframe_unwind.unwind.saved_context import from_registers
from sframe_unwind.unwind.step import Caller
from sframe_unwind.unwind.walk import Registers
from tests.kernel.fake import ARCH, FORK, NOP, RET, Memory, branch, kernel
from tests.missing import package_needed

LEAF = 0xFFFFFFC008050000
STACK = 0xFFFFFF8000100000
BEHIND_CALL = FORK + 4
LR = 30
MEMSET = (
    0xD503245F,  # bti c
    0x36180042,  # tbz w2, #3, +8
    0xF8008507,  # str x7, [x8], #8
    0xB40000A7,  # cbz x7, +20
    0xA9841D07,  # stp x7, x7, [x8, #64]!
    0xF1010042,  # subs x2, x2, #64
    0x54FFFFCA,  # b.ge -8
    RET,
    0xD53B00E3,  # mrs x3, dczid_el0
    0xD50B7428,  # dc zva, x8
    0x17FFFFFD,  # b -12
)
"""Instructions of ``memset``."""
PUSH, POP, BRK = 0xA9BF7BFD, 0xA8C17BFD, 0xD4210000


def written(memory: Memory, *words: int) -> None:
    for number, word in enumerate(words):
        memory.write(LEAF + 4 * number, word, 4)


def test_item_36_each_instruction_of_an_interrupted_leaf_leads_to_its_caller() -> None:
    memory = Memory()
    written(memory, *MEMSET)
    values = {ARCH.pc: 0, ARCH.sp: STACK, ARCH.fp: 0x77, LR: BEHIND_CALL}
    for number in range(len(MEMSET)):
        context = from_registers(ARCH, {**values, ARCH.pc: LEAF + 4 * number}, memory.read)
        steps = walk(context, Modules(ARCH, []), memory.read, None, kernel(memory))
        assert [(frame.pc, frame.sp, frame.unwinder) for frame in steps] == [
            (LEAF + 4 * number, STACK, NAME),
            (BEHIND_CALL, STACK, NAME),
        ]
        assert steps.detail == "start of the task"


def unwound(memory: Memory, interrupted: bool = True) -> Caller | None:
    found = KernelUnwinder(kernel(memory), memory.word).unwind_leaf(
        Registers(LEAF, STACK, 0x77), interrupted, {LR: BEHIND_CALL}.__getitem__
    )
    return found.caller if found is not None else None


def test_only_an_interrupted_function_has_its_registers() -> None:
    memory = Memory()
    written(memory, RET)
    assert unwound(memory) == Caller(STACK, BEHIND_CALL, STACK, 0x77)
    assert unwound(memory, interrupted=False) is None


@pytest.mark.parametrize(
    "words",
    [
        pytest.param((PUSH, POP, RET), id="it saves the link register"),
        pytest.param((branch(LEAF, FORK, True), RET), id="it calls"),
        pytest.param((0xD61F0200, RET), id="it jumps to an address in a register"),
        pytest.param((0x54000040, RET, 0xAA0003FE, RET), id="one path changes the link register"),
        pytest.param((0x910043FF, RET), id="it changes SP"),
        pytest.param((0x8B2063FF, RET), id="it changes SP by a register"),
        pytest.param((0xAA0003FD, RET), id="it changes the frame pointer"),
        pytest.param((0xD503233F, RET), id="it signs the link register"),
        pytest.param((BRK, RET), id="it stops"),
        pytest.param((branch(LEAF, LEAF, False),), id="it does not return"),
        pytest.param((NOP,) * 300 + (RET,), id="it is too long"),
        pytest.param((NOP,), id="it cannot be read"),
        pytest.param((0x00000000, RET), id="it is no code"),
    ],
)
def test_a_function_that_is_no_leaf_is_left_to_others(words: tuple[int, ...]) -> None:
    memory = Memory()
    written(memory, *words)
    assert unwound(memory) is None


def test_a_return_in_front_of_code_that_cannot_be_read_is_enough() -> None:
    memory = Memory()
    written(memory, NOP, RET)
    assert returns_untouched(LEAF, goes_on, 4, memory.read)


SPECIAL = {"sp", "wsp", "x29", "w29", "x30", "w30", "fp", "lr"}
COMPARISONS = {"cmp", "cmn", "tst"}
"""They write the zero register.  Capstone 5 takes their first operand for one that is written."""


def test_instructions_that_go_on_write_none_of_these_registers() -> None:
    """Capstone decodes them, too."""
    package_needed("capstone")
    import capstone

    decoder: Any = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_LITTLE_ENDIAN)
    decoder.detail = True
    dice, seen, jumps = random.Random(1), 0, 0
    for _ in range(40_000):
        word = dice.getrandbits(32)
        following = goes_on(word, LEAF)
        found = next(decoder.disasm(word.to_bytes(4, "little"), LEAF), None)
        if following is None or found is None:
            continue
        seen += 1
        written_to = {found.reg_name(one) for one in found.regs_access()[1]}
        assert found.mnemonic in COMPARISONS or not written_to & SPECIAL, (hex(word), found.mnemonic, found.op_str)
        if found.group(capstone.arm64.ARM64_GRP_JUMP):
            jumps += 1
            assert following[-1] == int(found.op_str.rpartition("#")[2], 16) or not following
            assert len(following) == (1 if found.mnemonic == "b" else 2)
        else:
            assert following == (LEAF + 4,)
    assert seen > 5_000
    assert jumps > 500
