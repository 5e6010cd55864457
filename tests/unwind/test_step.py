"""One step: a rule, registers and memory give the caller's registers."""

from __future__ import annotations

from typing import Callable

import pytest

from sframe_unwind.arch import BY_NAME, Arch
from sframe_unwind.errors import MemoryReadError, SFrameError, StepError
from sframe_unwind.unwind.step import Caller, check_outward, needs_registers, step
from sframe_unwind.unwind_rule import CFA, OUTERMOST, RegisterRule, UnwindRule, saved_at_cfa

AMD64, AARCH64, S390X = BY_NAME["amd64"], BY_NAME["aarch64"], BY_NAME["s390x"]

SP_VALUE, FP_VALUE = 0x7000_0000, 0x7000_0800
MASK = (1 << 64) - 1


def memory(words: dict[int, int]) -> Callable[[int], int]:
    def read(address: int) -> int:
        if address not in words:
            raise MemoryReadError(address, 8)
        return words[address]

    return read


def registers(values: dict[int, int]) -> Callable[[int], int]:
    def read(number: int) -> int:
        if number not in values:
            raise StepError(f"register {number} is not known")
        return values[number]

    return read


def no_memory(address: int) -> int:
    raise AssertionError(f"nothing may be read, but {address:#x} was")


def at_sp(abi: Arch, offset: int) -> RegisterRule:
    return RegisterRule(abi.sp, offset, False)


def test_amd64_on_entry() -> None:
    rule = UnwindRule(at_sp(AMD64, 8), saved_at_cfa(-8), None)
    caller = step(rule, AMD64, SP_VALUE, FP_VALUE, memory({SP_VALUE: 0x401234}))
    assert caller == Caller(SP_VALUE + 8, 0x401234, SP_VALUE + 8, FP_VALUE)


def test_amd64_with_a_frame_pointer() -> None:
    rule = UnwindRule(RegisterRule(AMD64.fp, 16, False), saved_at_cfa(-8), saved_at_cfa(-16))
    caller = step(rule, AMD64, SP_VALUE, FP_VALUE, memory({FP_VALUE + 8: 0x401234, FP_VALUE: 0x7000_0900}))
    assert caller == Caller(FP_VALUE + 16, 0x401234, FP_VALUE + 16, 0x7000_0900)


@pytest.mark.parametrize("name", ["aarch64", "aarch64_be"])
def test_aarch64_with_a_frame_record(name: str) -> None:
    abi = BY_NAME[name]
    rule = UnwindRule(RegisterRule(abi.fp, 32, False), saved_at_cfa(-24), saved_at_cfa(-32))
    caller = step(rule, abi, SP_VALUE, FP_VALUE, memory({FP_VALUE + 8: 0x401234, FP_VALUE: 0x7000_0900}))
    assert caller == Caller(FP_VALUE + 32, 0x401234, FP_VALUE + 32, 0x7000_0900)


def test_item_21_aarch64_leaf_whose_cfa_is_sp() -> None:
    """In the topmost frame the return address is still in x30."""
    rule = UnwindRule(at_sp(AARCH64, 0), None, None)
    caller = step(
        rule=rule, arch=AARCH64, sp=SP_VALUE, fp=FP_VALUE, read_word=no_memory, read_register=registers({30: 0x401234})
    )
    assert caller == Caller(SP_VALUE, 0x401234, SP_VALUE, FP_VALUE)
    check_outward(SP_VALUE, caller.cfa, caller.sp, innermost=True)


def test_item_19_the_callers_sp_is_160_below_the_cfa() -> None:
    rule = UnwindRule(at_sp(S390X, 320), saved_at_cfa(-48), saved_at_cfa(-72))
    cfa = SP_VALUE + 320
    caller = step(rule, S390X, SP_VALUE, FP_VALUE, memory({cfa - 48: 0x401234, cfa - 72: 0x7000_0900}))
    assert caller == Caller(cfa, 0x401234, cfa - 160, 0x7000_0900)


def test_item_19_s390x_leaf_with_its_registers_in_others() -> None:
    """RA is in f0 and FP in f2: a leaf function that uses r14 and r11 for other values."""
    rule = UnwindRule(at_sp(S390X, 160), RegisterRule(16, 0, False), RegisterRule(17, 0, False))
    caller = step(
        rule=rule,
        arch=S390X,
        sp=SP_VALUE,
        fp=FP_VALUE,
        read_word=no_memory,
        read_register=registers({16: 0x401234, 17: 0x7000_0900}),
    )
    assert caller == Caller(SP_VALUE + 160, 0x401234, SP_VALUE, 0x7000_0900)
    check_outward(SP_VALUE, caller.cfa, caller.sp, innermost=True)


@pytest.mark.parametrize(
    ("abi", "rule", "register"),
    [
        (AARCH64, UnwindRule(at_sp(AARCH64, 0), None, None), "x30"),
        (S390X, UnwindRule(at_sp(S390X, 160), None, None), "r14"),
        (S390X, UnwindRule(at_sp(S390X, 160), RegisterRule(16, 0, False), None), "f0"),
        (S390X, UnwindRule(at_sp(S390X, 160), saved_at_cfa(-48), RegisterRule(17, 0, False)), "f2"),
        (AMD64, UnwindRule(RegisterRule(10, 0, False), saved_at_cfa(-8), None), "r10"),
        (AMD64, UnwindRule(RegisterRule(10, -16, True), saved_at_cfa(-8), None), "r10"),
        (AMD64, UnwindRule(at_sp(AMD64, 8), RegisterRule(3, 0, True), None), "rbx"),
    ],
)
def test_item_18_registers_are_known_in_the_innermost_frame_only(abi: Arch, rule: UnwindRule, register: str) -> None:
    anything = dict.fromkeys(range(SP_VALUE - 512, SP_VALUE + 512, 8), 0x1000)
    with pytest.raises(StepError) as caught:
        step(rule, abi, SP_VALUE, FP_VALUE, memory(anything))
    where = "in the innermost frame and in a frame that a signal interrupted"
    expected = f"the rule needs {register}, which is known only {where}"
    assert str(caught.value) == expected
    assert needs_registers(rule, abi)


@pytest.mark.parametrize(
    ("abi", "rule"),
    [
        (AMD64, UnwindRule(at_sp(AMD64, 8), saved_at_cfa(-8), None)),
        (AMD64, UnwindRule(RegisterRule(AMD64.fp, -16, True), saved_at_cfa(-8), RegisterRule(AMD64.fp, 0, True))),
        (AARCH64, UnwindRule(at_sp(AARCH64, 32), saved_at_cfa(-24), saved_at_cfa(-32), True)),
        (S390X, UnwindRule(at_sp(S390X, 160), saved_at_cfa(-48), RegisterRule(S390X.sp, 0, False))),
        (S390X, OUTERMOST),
    ],
)
def test_item_18_rules_that_do_with_sp_and_fp(abi: Arch, rule: UnwindRule) -> None:
    assert not needs_registers(rule, abi)


def test_a_register_that_the_frame_does_not_know() -> None:
    rule = UnwindRule(at_sp(S390X, 160), RegisterRule(16, 0, False), None)
    with pytest.raises(StepError, match="register 16 is not known"):
        step(rule=rule, arch=S390X, sp=SP_VALUE, fp=FP_VALUE, read_word=no_memory, read_register=registers({}))


def test_flexible_cfa_from_another_register() -> None:
    """The CFA during AMD64 stack realignment, before rbp is set up."""
    rule = UnwindRule(RegisterRule(10, 0, False), saved_at_cfa(-8), None)
    r10 = SP_VALUE + 0x40
    caller = step(
        rule=rule,
        arch=AMD64,
        sp=SP_VALUE,
        fp=FP_VALUE,
        read_word=memory({r10 - 8: 0x401234}),
        read_register=registers({10: r10}),
    )
    assert caller == Caller(r10, 0x401234, r10, FP_VALUE)


def test_flexible_cfa_from_memory() -> None:
    """The CFA after AMD64 stack realignment: the rule needs only FP, and so works in any frame."""
    rule = UnwindRule(RegisterRule(AMD64.fp, -16, True), saved_at_cfa(-8), RegisterRule(AMD64.fp, 0, True))
    cfa = FP_VALUE + 0x40
    words = {FP_VALUE - 16: cfa, cfa - 8: 0x401234, FP_VALUE: 0x7000_0900}
    assert step(rule, AMD64, SP_VALUE, FP_VALUE, memory(words)) == Caller(cfa, 0x401234, cfa, 0x7000_0900)


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (RegisterRule(CFA, -24, True), 0x1111),
        (RegisterRule(AMD64.sp, 16, False), SP_VALUE + 16),
        (RegisterRule(AMD64.sp, 16, True), 0x2222),
        (RegisterRule(AMD64.fp, -8, False), FP_VALUE - 8),
        (RegisterRule(AMD64.fp, -8, True), 0x3333),
        (RegisterRule(3, 4, False), 0x5004),
        (RegisterRule(3, 8, True), 0x4444),
        (RegisterRule(CFA, -24, False), SP_VALUE + 0x100 - 24),
    ],
)
def test_every_place_gives_ra_and_fp(place: RegisterRule, expected: int) -> None:
    """The rules are computed with the frame's own FP and SP, not with the caller's values, which the step gives."""
    cfa = SP_VALUE + 0x100
    words = {cfa - 24: 0x1111, SP_VALUE + 16: 0x2222, FP_VALUE - 8: 0x3333, 0x5008: 0x4444}
    rule = UnwindRule(at_sp(AMD64, 0x100), place, place)
    caller = step(
        rule=rule, arch=AMD64, sp=SP_VALUE, fp=FP_VALUE, read_word=memory(words), read_register=registers({3: 0x5000})
    )
    assert caller == Caller(cfa, expected, cfa, expected)


def test_item_20_a_signed_return_address_is_stripped() -> None:
    rule = UnwindRule(at_sp(AARCH64, 32), saved_at_cfa(-24), saved_at_cfa(-32), ra_signed=True)
    words = {SP_VALUE + 8: 0x00A5_0000_0040_1234 | 0x5A << 56, SP_VALUE: 0x7000_0900}
    caller = step(rule, AARCH64, SP_VALUE, FP_VALUE, memory(words))
    # Bit 55 is set in 0xa5, so this is an address of the kernel.
    assert caller.pc == 0xFFFF_0000_0040_1234
    words[SP_VALUE + 8] = 0x5A25_0000_0040_1234
    assert step(rule, AARCH64, SP_VALUE, FP_VALUE, memory(words)).pc == 0x0040_1234
    assert step(rule._replace(ra_signed=False), AARCH64, SP_VALUE, FP_VALUE, memory(words)).pc == 0x5A25_0000_0040_1234
    assert step(rule, AARCH64, SP_VALUE, FP_VALUE, memory(words), pac_mask=0).pc == 0x5A25_0000_0040_1234
    assert step(rule, AARCH64, SP_VALUE, FP_VALUE, memory(words), pac_mask=0x7F << 56).pc == 0x0025_0000_0040_1234


def test_item_20_a_signed_return_address_in_its_register() -> None:
    rule = UnwindRule(at_sp(AARCH64, 0), None, None, ra_signed=True)
    caller = step(
        rule=rule,
        arch=AARCH64,
        sp=SP_VALUE,
        fp=FP_VALUE,
        read_word=no_memory,
        read_register=registers({30: 0x5A25_0000_0040_1234}),
    )
    assert caller.pc == 0x0040_1234


@pytest.mark.parametrize("abi", [AMD64, AARCH64, S390X])
def test_item_14_there_is_no_step_out_of_the_outermost_frame(abi: Arch) -> None:
    with pytest.raises(StepError, match="the return address is undefined: this is the outermost frame"):
        step(rule=OUTERMOST, arch=abi, sp=SP_VALUE, fp=FP_VALUE, read_word=no_memory, read_register=registers({}))


@pytest.mark.parametrize("offset", range(1, 8))
def test_a_cfa_that_is_not_aligned(offset: int) -> None:
    rule = UnwindRule(at_sp(AMD64, 8 + offset), saved_at_cfa(-8), None)
    with pytest.raises(StepError) as caught:
        step(rule, AMD64, SP_VALUE, FP_VALUE, no_memory)
    assert str(caught.value) == f"CFA {SP_VALUE + 8 + offset:#x} is not a multiple of 8"


@pytest.mark.parametrize(
    ("rule", "address"),
    [
        (UnwindRule(at_sp(AMD64, 16), saved_at_cfa(-8), saved_at_cfa(-16)), SP_VALUE + 8),
        (UnwindRule(at_sp(AMD64, 24), saved_at_cfa(-8), saved_at_cfa(-24)), SP_VALUE),
        (UnwindRule(RegisterRule(AMD64.fp, -16, True), saved_at_cfa(-8), None), FP_VALUE - 16),
    ],
)
def test_memory_that_cannot_be_read(rule: UnwindRule, address: int) -> None:
    """The step reports unreadable memory, which is not the same as corrupt data."""
    words = memory({SP_VALUE + 16: 0x1000})
    with pytest.raises(MemoryReadError) as caught:
        step(rule, AMD64, SP_VALUE, FP_VALUE, words)
    assert str(caught.value) == f"cannot read 8 bytes of memory at {address:#x}"
    assert not isinstance(caught.value, StepError)
    assert isinstance(caught.value, SFrameError)


def test_a_return_address_that_amd64_has_nowhere() -> None:
    with pytest.raises(StepError, match="does not locate the return address, which amd64 always has in memory"):
        step(
            rule=UnwindRule(at_sp(AMD64, 8), None, None),
            arch=AMD64,
            sp=SP_VALUE,
            fp=FP_VALUE,
            read_word=no_memory,
            read_register=registers({}),
        )


def test_addresses_wrap_at_64_bits() -> None:
    """Addresses computed from corrupt registers stay within 64 bits."""
    rule = UnwindRule(at_sp(AMD64, 16), saved_at_cfa(-8), saved_at_cfa(-16))
    caller = step(rule, AMD64, MASK - 7, 0, memory({0: 0x1234, MASK - 7: 0x5678}))
    assert caller == Caller(8, 0x1234, 8, 0x5678)
    rule = UnwindRule(RegisterRule(AMD64.fp, -16, True), saved_at_cfa(-8), None)
    caller = step(rule, AMD64, 0, 8, memory({MASK - 7: 0}))
    assert caller == Caller(0, 0, 0, 8)
    low = step(UnwindRule(at_sp(S390X, 0), saved_at_cfa(-48), None), S390X, 0, 0, memory({MASK - 47: 0x1234}))
    assert low.sp == MASK - 159


@pytest.mark.parametrize(
    ("sp", "caller_sp", "innermost", "outward"),
    [
        (0x1000, 0x1008, True, True),
        (0x1000, 0x1008, False, True),
        (0x1000, 0x1000, True, True),
        (0x1000, 0x1000, False, False),
        (0x1000, 0x0FF8, True, False),
        (0x1000, 0x0FF8, False, False),
    ],
)
def test_check_outward(sp: int, caller_sp: int, innermost: bool, outward: bool) -> None:
    if outward:
        check_outward(sp, caller_sp, caller_sp, innermost)
        return
    with pytest.raises(StepError) as caught:
        check_outward(sp, caller_sp, caller_sp, innermost)
    assert str(caught.value) == f"CFA {caller_sp:#x} does not lie outward of SP {sp:#x}"


def test_item_19_check_outward_compares_stack_pointers_not_the_cfa() -> None:
    """On s390x the CFA lies 160 bytes beyond the caller's SP, and so beyond SP in a frame that makes no progress."""
    with pytest.raises(StepError, match="CFA 0x10a0 does not lie outward of SP 0x1000"):
        check_outward(0x1000, 0x10A0, 0x1000, innermost=False)


def test_item_30_a_cfa_that_is_no_multiple_of_16_is_accepted() -> None:
    """AAPCS64 wants a multiple of 16; hand-written code that keeps 8 is unwound nevertheless."""
    assert AARCH64.stack_alignment == 16
    rule = UnwindRule(at_sp(AARCH64, 24), saved_at_cfa(-8), None)
    caller = step(rule, AARCH64, SP_VALUE, FP_VALUE, memory({SP_VALUE + 16: 0x401234}))
    assert caller == Caller(SP_VALUE + 24, 0x401234, SP_VALUE + 24, FP_VALUE)
