"""s390x (64-bit ELF ABI supplement).

A call leaves the return address in r14.  Leaf functions may save registers in floating-point registers.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from typing import Callable

from sframe_unwind.address import ADDRESS_MASK, WORD_SIZE
from sframe_unwind.arch.base import Arch, FrameRecord, JumpBuffer, PltStub, PointerGuard, SignalFrame
from sframe_unwind.arch.elf_code import (
    ElfCode,
    FieldRelocation,
    SlotLoad,
    absolute,
    relative,
    relative_halfwords,
    unchanged,
)
from sframe_unwind.arch.linux_kernel import (
    BackChain,
    EntryCode,
    LinuxKernel,
    Passage,
    PlaceKind,
    StackSwitch,
    SwitchFrame,
)
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule

PC, SP, FP, RA = 65, 15, 11, 14
_PSW_MASK = 64

SP_FROM_CFA = -160
"""Size of the register save area, negated.  Every caller provides one, and it lies between its SP and the CFA."""

_FPRS = (0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15)
"""Numbers of the floating-point registers, in the order of DWARF numbers 16 to 31."""
_FLOAT_REGISTERS = tuple(16 + _FPRS.index(n) for n in range(16))
"""DWARF numbers of f0 to f15."""

_SIGREGS = {
    _PSW_MASK: 0,
    PC: 8,
    **{n: 16 + WORD_SIZE * n for n in range(16)},
    **{number: 216 + WORD_SIZE * n for n, number in enumerate(_FLOAT_REGISTERS)},
}
"""Offsets in ``struct _sigregs``, in bytes: PSW (16), r0 to r15 (128), access registers (64), control register (8),
f0 to f15."""
_SAVE_AREA = 160

_USER_PSW = 1 << 48 | 1 << 32 | 1 << 31
"""The bits of a PSW mask that every 64-bit program has: problem state, extended and basic addressing."""
_CALLS = {2: (b"\x0d", 0xE0), 4: (b"\xa7", 0xE5), 6: (b"\xc0", 0xE5)}
"""``basr``, ``bras`` and ``brasl`` with r14, by length in bytes: the first byte, and the fixed bits of the second."""


def ucontext_pc(registers: Mapping[int, int], _read: Callable[[int, int], bytes]) -> tuple[int, bool]:
    """Return the address in the PSW if the kernel saved one, otherwise r14: the C library does not save the PSW."""
    by_kernel = registers[_PSW_MASK] & _USER_PSW == _USER_PSW
    return registers[PC if by_kernel else RA], by_kernel


def ends_call(code: bytes) -> bool:
    """Recognise ``basr``, ``bras`` and ``brasl`` that leave the return address in r14."""
    return any(
        code[-length : 1 - length] == first and code[1 - length] & (0xF0 if length == 2 else 0xFF) == second
        for length, (first, second) in _CALLS.items()
    )


def call_target(code: bytes, return_address: int) -> int | None:
    """Return the target of ``brasl %r14,imm32``."""
    if code[:2] != b"\xc0\xe5":
        return None
    return return_address - 6 + 2 * int.from_bytes(code[2:], "big", signed=True)


def returned_address(code: bytes, address: int) -> tuple[int, bool] | None:
    """Decode ``larl`` or ``lgrl`` into ``%r2``."""
    kinds = {b"\xc0\x20": False, b"\xc4\x28": True}
    if code[:2] not in kinds:
        return None
    return address + 2 * struct.unpack_from(">i", code, 2)[0], kinds[code[:2]]


_STUB = re.compile(rb"\xc0\x10....\xe3\x10\x10\x00\x00\x04\x07\xf1", re.DOTALL)  # larl %r1,slot; lg %r1,0(%r1); br %r1
# stg %r0 or %r1,56(%r15); larl %r1,table; mvc 48(8,%r15),8(%r1); lg %r1,16(%r1); br %r1
_HEADER = re.compile(
    rb"\xe3[\x00\x10]\xf0\x38\x00\x24\xc0\x10....\xd2\x07\xf0\x30\x10\x08\xe3\x10\x10\x10\x00\x04\x07\xf1", re.DOTALL
)


def plt_stub(code: bytes) -> PltStub | None:
    """Decode the stubs of GNU ld and mold, which change neither SP nor r14."""
    is_header = bool(_HEADER.match(code))
    parts = ((0, UnwindRule(RegisterRule(SP, -SP_FROM_CFA, False), None, None)),)
    return PltStub(parts, is_header) if is_header or _STUB.match(code) else None


def slot_loads(code: bytes, address: int, _entry: int) -> Iterator[SlotLoad]:
    """Yield each ``larl %r1,slot``."""
    for found in re.finditer(rb"\xc0\x10(....)", code, re.DOTALL):
        (distance,) = struct.unpack(">i", found[1])
        yield SlotLoad(found.start(), address + found.start() + 2 * distance)


_RELOCATIONS = {
    4: FieldRelocation(4, absolute),  # R_390_32
    5: FieldRelocation(4, relative),  # R_390_PC32
    22: FieldRelocation(8, absolute),  # R_390_64
    23: FieldRelocation(8, relative),  # R_390_PC64
}

ELF_CODE = ElfCode(
    slot_relocations=(11, 10),
    relative_relocation=12,
    fields={
        **_RELOCATIONS,
        16: FieldRelocation(2, relative_halfwords),  # R_390_PC16DBL
        18: FieldRelocation(2, relative_halfwords),  # R_390_PLT16DBL
        19: FieldRelocation(4, relative_halfwords),  # R_390_PC32DBL
        20: FieldRelocation(4, relative_halfwords),  # R_390_PLT32DBL
    },
    relocate_instruction=unchanged,
    plt_header_size=32,
    slot_loads=slot_loads,
)

_FRAME = "stack_frame"
_CALL = rb"(?P<call>\xc0\xe5....)"  # brasl %r14
_LPSWE = 0x400
"""Address of the instruction that returns from exceptions."""
_SAVES_FP = re.compile(rb"\xeb[\x6f\x7f\x8f\x9f\xaf\xbf][\xf0-\xff].\x00\x24", re.DOTALL)  # stmg %rN,%r15: N <= 11


# arch/s390/kernel/entry.S and head64.S, and include/asm/stacktrace.h, of Linux 6.1
LINUX_KERNEL = LinuxKernel(
    entry_code=(
        EntryCode("pgm_check_handler", "__do_pgm_check", PlaceKind.EXCEPTION),
        EntryCode("ext_int_handler", "do_ext_irq", PlaceKind.EXCEPTION),
        EntryCode("io_int_handler", "do_io_irq", PlaceKind.EXCEPTION),
        EntryCode("system_call", "__do_syscall", PlaceKind.USER_ENTRY),
        EntryCode("ret_from_fork", "__ret_from_fork", PlaceKind.TASK_START),
        EntryCode("restart_int_handler", "", PlaceKind.TASK_START),
    ),
    passages=(
        Passage("psw_idle", PlaceKind.LEAF),
        Passage("__switch_to", PlaceKind.LEAF),
        # lpswe in the lowcore (struct lowcore), to which exceptions return
        Passage("return_lpswe", PlaceKind.PARTLY_SAVED, _LPSWE, 4, is_absolute=True),
    ),
    saved_registers={**{number: f"gprs.{number}" for number in range(16)}, PC: "psw.addr"},
    frame_record="",
    task_registers={},
    ends_function=lambda code: code[:2] == b"\x07\xfe",  # br %r14
    ends_exception=lambda code: code[:4] == b"\x47\xf0" + _LPSWE.to_bytes(2, "big"),  # b
    switch_frame=SwitchFrame(
        _FRAME, "thread.ksp", {**{number: f"gprs.{number - 6}" for number in range(6, 16)}, PC: "gprs.8"}
    ),
    user_mode=("psw.mask", 1 << 48),
    below_registers=_FRAME,
    returns_itself=True,
    stack_switches=(
        # call_on_stack: stg of the back chain; the call; lgr %r15,%rN
        StackSwitch(
            re.compile(rb"\xe3.[\xf0-\xff].\x00\x24" + _CALL + rb"\xb9\x04\x00[\xf0-\xff]", re.DOTALL),
            PlaceKind.STACK_SWITCH,
            _SAVES_FP,
        ),
        # call_on_stack_noreturn: xc of the back chain with itself; the call
        StackSwitch(re.compile(rb"\xd7\x07([\xf0-\xff].)\1" + _CALL, re.DOTALL), PlaceKind.TASK_START),
    ),
    back_chain=BackChain(_FRAME, "back_chain", {FP: "gprs.5", PC: "gprs.8"}),
    vmcore_info=0xE0C,  # struct lowcore, vmcore_info
    lowest_code=0,
)

ARCH = Arch(
    name="s390x",
    elf_machine="EM_S390",
    uname="s390x",
    byteorder="big",
    pc=PC,
    sp=SP,
    fp=FP,
    ra=RA,
    sp_from_cfa=SP_FROM_CFA,
    stack_alignment=8,
    register_names={
        **{n: f"r{n}" for n in range(16)},
        **{number: f"f{n}" for n, number in enumerate(_FLOAT_REGISTERS)},
        _PSW_MASK: "pswm",
        PC: "pswa",
    },
    preserved=(*range(6, 11), 12, 13, *range(24, 32)),
    pac_mask=0,
    vector_granules=None,
    instruction_unit=2,
    libunwind_unit=1,
    padding=re.compile(rb"(?:\x07[\0\x07]|\x47\0\0\0|\xc0\x04\0\0\0\0)*"),  # nopr, nop, jgnop
    call_size=6,
    call_target=call_target,
    returned_address=returned_address,
    plt_stub=plt_stub,
    plt_header_rows=(),
    # Code built with -mbackchain.  A function saves its caller's registers in the save area that the caller provides.
    frame_record=FrameRecord(in_back_chain=True, fp=WORD_SIZE * FP, pc=WORD_SIZE * RA, sp=0, at_end=True),
    signal_frames=(
        # The frame begins with the save area, the instruction (8), siginfo (128) and the head of ucontext (40).
        SignalFrame(
            code=b"\x0a\xad",  # svc 173: rt_sigreturn
            registers={number: _SAVE_AREA + 176 + offset for number, offset in _SIGREGS.items()},
        ),
        # The frame of a handler that was installed without SA_SIGINFO.
        SignalFrame(code=b"\x0a\x77", registers=_SIGREGS, pointer=_SAVE_AREA + 8),  # svc 119: sigreturn
    ),
    ucontext={number: 40 + offset for number, offset in _SIGREGS.items()},  # after its head
    ucontext_pc=ucontext_pc,
    jump_buffer=JumpBuffer(
        registers={
            **{n: WORD_SIZE * (n - 6) for n in range(6, 14)},
            PC: 8 * WORD_SIZE,
            SP: 9 * WORD_SIZE,
            **{_FLOAT_REGISTERS[n]: WORD_SIZE * (n + 2) for n in range(8, 16)},
        },
        mangled=frozenset((PC, SP)),
        rotation=0,
    ),
    # The guard is that of the stack protector, whose most significant byte is 0.
    pointer_guard=PointerGuard(("acr0", "acr1"), offset=0x28, symbols=(), random=0, random_mask=ADDRESS_MASK >> 8),
    system_call_arguments=tuple(range(2, 8)),
    ends_call=ends_call,
    user_registers=(_PSW_MASK, PC, *range(16)),  # s390_regs; the access registers after them are left out
    float_registers=_FLOAT_REGISTERS,
    # r0 to r15, f0 to f15, the PSW's mask and address
    sample_registers={
        **{n: n for n in range(16)},
        **{16 + n: number for n, number in enumerate(_FLOAT_REGISTERS)},
        32: _PSW_MASK,
        33: PC,
    },
    relocations=_RELOCATIONS,
    elf_code=ELF_CODE,
    linux_kernel=LINUX_KERNEL,
)
