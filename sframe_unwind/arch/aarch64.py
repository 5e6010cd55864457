"""AArch64 (AAPCS64), in both byte orders.

A call leaves the return address in x30.  Functions save it next to the frame pointer.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from typing import Callable

from sframe_unwind.address import ADDRESS_MASK, WORD_SIZE, ByteOrder
from sframe_unwind.arch.aarch64_leaf import goes_on
from sframe_unwind.arch.base import Arch, FrameRecord, JumpBuffer, PltStub, PointerGuard, SignalFrame
from sframe_unwind.arch.elf_code import ElfCode, FieldRelocation, SlotLoad, absolute, relative
from sframe_unwind.arch.linux_kernel import Alternatives, EntryCode, LinuxKernel, Passage, PlaceKind
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule, saved_at_cfa

PC, SP, FP, LR, VG = 32, 31, 29, 30, 46
_NAMES = {**{n: f"x{n}" for n in range(31)}, SP: "sp", PC: "pc"}

PAC_MASK = 0xFF7F_0000_0000_0000
"""The bits above a 48-bit address, except bit 55.  Bit 55 selects the upper or lower half of the address space and is
never part of the authentication code."""

_UCONTEXT = 184
"""Offset of the registers in ``ucontext_t``, in bytes.  Its head (176) and the fault address (8) precede them."""
_SIGCONTEXT = 128 + _UCONTEXT
"""Offset of the registers in a signal frame from SP, in bytes.  ``siginfo`` (128) precedes the ``ucontext_t``."""

_RESUME = struct.Struct("<3I")
_LANDING_PADS = (0xD503249F, 0xD503201F)  # bti j, nop
_RETURN_TO_X1 = (0xAA0103FE, 0xD65F03C0)  # mov x30,x1; ret


def ucontext_pc(registers: Mapping[int, int], read: Callable[[int, int], bytes]) -> tuple[int, bool]:
    """Return pc, or x1.

    ``getcontext`` saves its return address as pc and as x30.  ``swapcontext`` of newer versions of glibc saves the
    address of an instruction of its own as both: ``mov x30,x1`` and ``ret`` there return to the saved x1.

    In a context that the kernel saved, pc and x30 are equal only at the return address of a call that has returned.
    In a context that ``makecontext`` made, x30 is the address of glibc's code to end it.
    """
    pc = registers[PC]
    if pc != registers[LR] or not pc:
        return pc, True
    first, *rest = _RESUME.unpack(read(pc, _RESUME.size))
    return registers[1] if first in _LANDING_PADS and tuple(rest) == _RETURN_TO_X1 else pc, False


def ends_call(code: bytes) -> bool:
    """Recognise ``bl``, ``blr`` and the forms of ``blr`` that authenticate the address."""
    instruction = int.from_bytes(code[-4:], "little")
    return instruction >> 26 == 0b100101 or instruction & 0xFEFFF000 == 0xD63F0000


def call_target(code: bytes, return_address: int) -> int | None:
    """Return the target of ``bl imm26``.  Instructions are little-endian in both byte orders of data."""
    instruction = int.from_bytes(code, "little")
    if instruction >> 26 != 0b100101:
        return None
    distance = (instruction & 0x03FF_FFFF ^ 0x0200_0000) - 0x0200_0000
    return return_address - 4 + 4 * distance


def returned_address(code: bytes, address: int) -> tuple[int, bool] | None:
    """Decode ``adrp x0`` followed by ``add`` or ``ldr`` with the offset in the page."""
    instructions = struct.unpack_from("<5I", code)
    start = 1 if instructions[0] in (0xD503245F, 0xD503233F) else 0  # bti c, paciasp
    first, second = instructions[start : start + 2]
    if first & 0x9F00001F != 0x90000000:  # adrp x0, page
        return None
    page = ((first >> 5 & 0x7FFFF) << 2 | first >> 29 & 3) << 12
    page = (page ^ 1 << 32) - (1 << 32) + (address + 4 * start & ~0xFFF)
    if second & 0xFFC003FF == 0x91000000:  # add x0, x0, offset
        return page + (second >> 10 & 0xFFF), False
    if second & 0xFFC003FF == 0xF9400000:  # ldr x0, [x0, offset]
        return page + 8 * (second >> 10 & 0xFFF), True
    return None


_PUSH = 0xA9BF7BF0  # stp x16, x30, [sp, #-16]!
_JUMPS = (0xD61F0220, 0xD71F0A30)  # br x17; braa x17, x16
_HARMLESS = (
    (0xFFFFFFFF, 0xD503245F),  # bti c
    (0xFFFFFFFF, 0xD503201F),  # nop
    (0xFFFFFFFF, 0xD503219F),  # autia1716
    (0x9F00001F, 0x90000010),  # adrp x16, page
    (0xFFC003FF, 0xF9400211),  # ldr x17, [x16, offset]
    (0xFFC003FF, 0x91000210),  # add x16, x16, offset
)
"""Masks and values of the other instructions of PLT stubs.  They change neither SP nor x30."""


def plt_stub(code: bytes) -> PltStub | None:
    """Decode the stubs of GNU ld, lld and mold: the header pushes x16 and x30, the others push nothing."""
    parts = [(0, UnwindRule(RegisterRule(SP, 0, False), None, None))]
    for number, (word,) in enumerate(struct.iter_unpack("<I", code[: len(code) & ~3])):
        if word in _JUMPS:
            return PltStub(tuple(parts), is_header=len(parts) > 1) if number else None
        if word == _PUSH and len(parts) == 1:
            pushed = UnwindRule(RegisterRule(SP, 2 * WORD_SIZE, False), saved_at_cfa(-WORD_SIZE), None)
            parts.append((4 * number + 4, pushed))
        elif not any(word & mask == value for mask, value in _HARMLESS):
            return None
    return None


_ERET = 0xD69F03E0
_EXCEPTIONS = ("sync", "irq", "fiq", "error")
_CPU_CONTEXT = "thread.cpu_context"


def _ends_function(code: bytes) -> bool:
    """Recognise ``b`` and ``ret``."""
    instruction = int.from_bytes(code, "little")
    return instruction >> 26 == 0b000101 or instruction & 0xFFFFFC1F == 0xD65F0000


def _jump(instruction: int) -> int | None:
    """Return the distance of ``b`` in bytes."""
    if instruction >> 26 != 0b000101:
        return None
    return ((instruction & 0x3FFFFFF ^ 0x2000000) - 0x2000000) * 4


def _entry(vector: str, kind: PlaceKind) -> EntryCode:
    return EntryCode(vector, f"{vector}_handler", kind)


LINUX_KERNEL = LinuxKernel(
    # arch/arm64/kernel/entry.S and head.S, since Linux 5.14
    entry_code=(
        *(_entry(f"el1{sp}_64_{name}", PlaceKind.EXCEPTION) for sp in "th" for name in _EXCEPTIONS),
        EntryCode("__bad_stack", "handle_bad_stack", PlaceKind.EXCEPTION),  # a stack overflow
        *(_entry(f"el0t_{bits}_{name}", PlaceKind.USER_ENTRY) for bits in (64, 32) for name in _EXCEPTIONS),
        EntryCode("call_on_irq_stack", "", PlaceKind.STACK_SWITCH),
        EntryCode("ret_from_fork", "", PlaceKind.TASK_START),
        EntryCode("__primary_switched", "start_kernel", PlaceKind.TASK_START),
        EntryCode("__secondary_switched", "secondary_start_kernel", PlaceKind.TASK_START),
    ),
    passages=(
        # 16 entries of 128 bytes each, the first half of which is for exceptions in the kernel
        Passage("vectors", PlaceKind.PARTLY_SAVED, 0, 0x400),
        Passage("vectors", PlaceKind.USER_ENTRY, 0x400, 0x400),
        Passage("ret_to_kernel", PlaceKind.PARTLY_SAVED),
        Passage("ret_to_user", PlaceKind.USER_ENTRY),
    ),
    saved_registers={**{number: f"regs.{number}" for number in range(31)}, SP: "sp", PC: "pc"},
    frame_record="stackframe",
    task_registers={
        **{number: f"{_CPU_CONTEXT}.x{number}" for number in range(19, 29)},
        FP: f"{_CPU_CONTEXT}.fp",
        SP: f"{_CPU_CONTEXT}.sp",
        PC: f"{_CPU_CONTEXT}.pc",
    },
    ends_function=_ends_function,
    ends_exception=lambda code: int.from_bytes(code, "little") == _ERET,
    goes_on=goes_on,
    alternatives=Alternatives(nop=0xD503201F, jump=_jump),
)


def slot_loads(code: bytes, address: int, _entry: int) -> Iterator[SlotLoad]:
    """Yield each ``adrp x16, PAGE; ldr x17, [x16, OFFSET]``.  A stub can begin with ``bti c``."""
    words = struct.unpack(f"<{len(code) // 4}I", code[: len(code) // 4 * 4])
    for number, (adrp, ldr) in enumerate(zip(words, words[1:])):
        if adrp & 0x9F00001F == 0x90000010 and ldr & 0xFFC003FF == 0xF9400211:
            begins_with_bti = number > 0 and words[number - 1] == 0xD503245F
            page = (address + 4 * number & ~0xFFF) + (_pages(adrp) << 12)
            yield SlotLoad(4 * number - 4 * begins_with_bti, page + (ldr >> 10 & 0xFFF) * 8)


def _pages(adrp: int) -> int:
    """Return the distance that an ``adrp`` instruction has, in pages."""
    distance = adrp >> 3 & 0x1FFFFC | adrp >> 29 & 3
    return distance - (1 << 21) if distance >> 20 else distance


_BRANCHES = {282: (26, 0), 283: (26, 0), 280: (19, 5), 279: (14, 5)}
"""R_AARCH64_JUMP26, CALL26, CONDBR19 and TSTBR14: bits and position of the operand, which counts in instructions."""
_PAGES, _LOW, _ADR = 275, 277, 274
"""R_AARCH64_ADR_PREL_PG_HI21, ADD_ABS_LO12_NC and ADR_PREL_LO21."""


def relocate_instruction(instruction: int, kind: int, address: int, value: int) -> int:
    """Fill in the operand of a branch, ``adrp``, ``adr`` or ``add``."""
    if kind in _BRANCHES:
        bits, shift = _BRANCHES[kind]
        mask = (1 << bits) - 1
        return instruction & ~(mask << shift) | ((value - address) >> 2 & mask) << shift
    if kind in (_PAGES, _ADR):
        distance = (value >> 12) - (address >> 12) if kind == _PAGES else value - address
        return instruction & 0x9F00001F | (distance & 3) << 29 | (distance >> 2 & 0x7FFFF) << 5
    if kind == _LOW:
        return instruction & ~(0xFFF << 10) | (value & 0xFFF) << 10
    return instruction


_RELOCATIONS = {
    257: FieldRelocation(8, absolute),  # R_AARCH64_ABS64
    258: FieldRelocation(4, absolute),  # R_AARCH64_ABS32
    260: FieldRelocation(8, relative),  # R_AARCH64_PREL64
    261: FieldRelocation(4, relative),  # R_AARCH64_PREL32
}

ELF_CODE = ElfCode(
    slot_relocations=(1026, 1025),
    relative_relocation=1027,
    fields=_RELOCATIONS,
    relocate_instruction=relocate_instruction,
    plt_header_size=32,
    slot_loads=slot_loads,
)


def _arch(name: str, byteorder: ByteOrder) -> Arch:
    return Arch(
        name=name,
        elf_machine="EM_AARCH64",
        uname=name,
        byteorder=byteorder,
        pc=PC,
        sp=SP,
        fp=FP,
        ra=LR,
        sp_from_cfa=0,
        stack_alignment=16,
        register_names=_NAMES,
        preserved=tuple(range(19, 29)),
        pac_mask=PAC_MASK,
        vector_granules=VG,
        instruction_unit=4,
        libunwind_unit=4,
        padding=re.compile(rb"(?:\x1f\x20\x03\xd5|\0\0\0\0)*"),  # nop, or an undefined instruction
        call_size=4,
        call_target=call_target,
        returned_address=returned_address,
        plt_stub=plt_stub,
        plt_header_rows=(),
        frame_record=FrameRecord(in_back_chain=False, fp=0, pc=WORD_SIZE, sp=2 * WORD_SIZE, at_end=False),
        signal_frames=(
            SignalFrame(
                code=b"\x68\x11\x80\xd2\x01\x00\x00\xd4",  # mov x8,#139; svc #0
                registers={number: _SIGCONTEXT + WORD_SIZE * number for number in range(33)},
            ),
        ),
        ucontext={number: _UCONTEXT + WORD_SIZE * number for number in range(33)},
        ucontext_pc=ucontext_pc,
        jump_buffer=JumpBuffer(
            registers={**{19 + word: WORD_SIZE * word for word in range(11)}, PC: 11 * WORD_SIZE, SP: 13 * WORD_SIZE},
            mangled=frozenset((PC, SP)),
            rotation=0,
        ),
        pointer_guard=PointerGuard(
            (),
            offset=0,
            symbols=("__pointer_chk_guard", "__pointer_chk_guard_local"),
            random=WORD_SIZE,
            random_mask=ADDRESS_MASK,
        ),
        system_call_arguments=tuple(range(6)),
        ends_call=ends_call,
        user_registers=tuple(range(33)),  # struct user_pt_regs
        float_registers=(),
        sample_registers={number: number for number in range(33)},  # x0 to x29, lr, sp, pc
        relocations=_RELOCATIONS,
        elf_code=ELF_CODE,
        linux_kernel=LINUX_KERNEL,
    )


LITTLE = _arch("aarch64", "little")
BIG = _arch("aarch64_be", "big")
